import { SettingsError } from '@whoa/core';
import { expect, test } from 'vitest';
import { createTaskStore } from './factory.ts';
import { readStoreConfig } from './store-config.ts';

test.each([
  ['memory', { backend: 'memory' }],
  ['memory:', { backend: 'memory' }],
  ['sqlite:tasks.db', { backend: 'sqlite', file: 'tasks.db' }],
  ['postgresql:///agents?host=/run/postgresql', { backend: 'postgres' }],
])('%s is an address', (address, config) => expect(readStoreConfig(address)).toMatchObject(config));

const NAMED = "expected 'memory', 'sqlite:FILE' or 'postgres://HOST/DATABASE'";

test.each([
  ['mysql://root:secret@db', "an address that starts with 'mysql:'"],
  ['localhost:5432', "'localhost:5432'; write 'postgres://localhost:5432'"],
  ['data/tasks.db', "'data/tasks.db'; for a file, write 'sqlite:data/tasks.db'"],
  ['secret@host', "text without a scheme, such as 'postgres:'"],
  ['', 'an empty text: is its variable set?'],
])('%s is rejected: what is expected, what it got without a password, and what to write', (address, got) => {
  expect(() => createTaskStore(address)).toThrow(new SettingsError('store', `${NAMED}, got ${got}`));
});

test.each(['redis://u:secret@host', 'rediss://host:6380/1', 'redis:secret', { backend: 'redis', url: 'redis://h' }])(
  'a store on Redis is rejected with what to use (%j)',
  (config) => {
    const words = "Redis keeps no tasks: use 'postgres://HOST/DATABASE', and Redis as its bus";
    expect(() => createTaskStore(config as never)).toThrow(new SettingsError('store', words));
  },
);

test('an address that is not set is an error, and never the memory of this process', () => {
  const words = `store: ${NAMED}, or { backend }; got undefined: is its variable set?`;
  expect(() => createTaskStore(undefined)).toThrow(words);
  expect(() => createTaskStore(null as never)).toThrow(`store: ${NAMED}, got null`);
  expect(() => createTaskStore({} as never)).toThrow("backend: expected 'memory' or 'sqlite'");
});

// docs/guides/workers/write-a-store.md lists every member of a driver. The table below cannot miss one: it is typed by the interface.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { StoreDriver } from '@whoa/tasks/store';
import { expect, test } from 'vitest';

type Member = Exclude<keyof StoreDriver, symbol> | '[Symbol.asyncDispose]';

const MEMBERS: Readonly<Record<Member, true>> = {
  name: true,
  create: true,
  cancel: true,
  send: true,
  answer: true,
  get: true,
  list: true,
  read: true,
  conversation: true,
  watch: true,
  take: true,
  noteOffered: true,
  claim: true,
  claimMany: true,
  load: true,
  heartbeat: true,
  held: true,
  sweep: true,
  append: true,
  show: true,
  release: true,
  park: true,
  finish: true,
  counts: true,
  tenants: true,
  workers: true,
  queues: true,
  share: true,
  conversations: true,
  questions: true,
  pause: true,
  setEngine: true,
  figures: true,
  feed: true,
  remove: true,
  '[Symbol.asyncDispose]': true,
};

const page = readFileSync(join(import.meta.dirname, '../docs/guides/workers/write-a-store.md'), 'utf8');
const [, methods = ''] = /^## The methods$(.*?)^## /msu.exec(page) ?? [];

test('the page on writing a store lists every member of a driver once', () => {
  const listed = [...methods.matchAll(/^\| `([^`]+)` \|/gmu)].map(([, name]) => name!);
  expect(listed.toSorted()).toEqual(Object.keys(MEMBERS).toSorted());
});

test('the page states that the driver interface is unstable', () => {
  expect(page).toContain('**Unstable.**');
});

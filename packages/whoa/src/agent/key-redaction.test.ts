import { createAgent, defineTool, type RunEvent } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { createKeyRedaction } from './key-redaction.ts';

const fake = (prefix: string, length: number): string => prefix + 'aB3'.repeat(40).slice(0, length);

test.each([
  ['Anthropic key', fake('sk-ant-api03-', 60)],
  ['OpenAI key', fake('sk-proj-', 60)],
  ['OpenAI key', fake('sk-', 48)],
  ['AWS key', `AKIA${'A1'.repeat(8)}`],
  ['GitHub token', fake('ghp_', 36)],
  ['GitHub token', fake('github_pat_', 60)],
  ['Google key', fake('AIza', 35)],
  ['Slack token', fake('xoxb-', 30)],
  ['npm token', fake('npm_', 36)],
  ['private key', '-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----'],
])('a %s is taken out and counted', (name, key) => {
  const redact = createKeyRedaction({});
  expect(redact(`A=${key}\nB="${key}"`)).toEqual({ text: `A=[redacted: ${name}]\nB="[redacted: ${name}]"`, count: 2 });
});

test('text that only resembles a key is kept', () => {
  const text = 'sk-learn task-management-of-all-the-things AKIAx ghp_short mask-and-more-of-these-words';
  expect(createKeyRedaction({})(text)).toEqual({ text, count: 0 });
});

test('the keys of this process are taken out whatever their shape', () => {
  const redact = createKeyRedaction({ OPENAI_API_KEY: 'my own strange key', ANTHROPIC_API_KEY: 'x' });
  expect(redact('x my own strange key x').text).toBe('x [redacted: OPENAI_API_KEY] x');
});

test('a key in a result reaches neither observers nor the model nor the outcome; inputs stay as they are', async () => {
  const key = fake('sk-ant-', 40);
  const leak = defineTool<unknown>({
    name: 'leak',
    description: '',
    inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
    inputJsonSchema: {},
    effects: 'read',
    execute(_, { update }) {
      update({ content: `so far ${key}`, details: { seen: [key] } });
      return { content: [{ type: 'text', text: `it is ${key}` }], details: { env: { [key]: key } } };
    },
  });
  const fails = { ...leak, name: 'fails', execute: () => Promise.reject(new Error(`bad key ${key}`)) };
  const input = { token: key };
  const model = createScriptedModel([
    [
      { call: 'leak', input },
      { call: 'fails', input },
    ],
    ['done'],
  ]);
  const events: RunEvent[] = [];
  const agent = createAgent({ name: 'a', model, tools: [leak, fails] });
  const run = agent.run('go', { redact: createKeyRedaction({}), hooks: { any: (event) => events.push(event) } });
  const { calls } = await run.outcome;
  expect(calls).toMatchObject([
    { content: [{ text: 'it is [redacted: Anthropic key]' }], redacted: 3 },
    { content: 'bad key [redacted: Anthropic key]', redacted: 1 },
  ]);
  const results = events.filter(({ type }) => type === 'call-update' || type === 'call-end');
  expect(JSON.stringify([calls, results])).not.toContain(key);
  const told = model.requests.at(-1)!.messages.filter(({ role }) => role === 'tool');
  expect(JSON.stringify(told)).not.toContain(key);
  expect(JSON.stringify(events.filter(({ type }) => type === 'call-start'))).toContain(key);
});

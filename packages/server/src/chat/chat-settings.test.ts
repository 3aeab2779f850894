import { SettingsError } from '@whoa/core';
import { tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { createAccess } from '../http/access/access.ts';
import { createLogin } from '../http/access/login.ts';
import { createTokenAuthenticator } from '../http/access/tokens.ts';
import { listen } from '../http/listen.ts';
import { createMcpHandler, serveMcp } from '../mcp/serve-mcp.ts';
import { createTaskApi } from '../tasks/task-api.ts';
import { createAgUiHandler } from './ag-ui/ag-ui-handler.ts';
import { createChatHandler } from './chat-handler.ts';

function refusal(create: () => unknown): string {
  try {
    create();
  } catch (error) {
    // Each has the code INVALID_SETTING.
    return error instanceof SettingsError ? error.message : `no SettingsError: ${String(error)}`;
  }
  return 'nothing was refused';
}

const charge_card = tool({ inputSchema: z.object({ euros: z.number() }), execute: () => 'paid' });
const GIVEN = {
  store: 'memory',
  authenticate: () => 'ada',
  tools: { charge_card },
  reply: () => ReadableStream.from([]),
};

test.each<[object, string]>([
  [{ waituntil: () => {} }, "waituntil: unknown setting; did you mean 'waitUntil'? The settings are store, "],
  [{ mustfinish: {} }, "mustfinish: unknown setting; did you mean 'mustFinish'?"],
  [
    { mustFinish: { chargeCard: { timeoutMs: 10_000 } } },
    "mustFinish: there is no tool 'chargeCard'; did you mean 'charge_card'? The tools are charge_card",
  ],
  [{ mustFinish: { charge_card: 10_000 } }, 'mustFinish.charge_card: expected an object with timeoutMs, got 10000'],
  [
    { mustFinish: { charge_card: {} } },
    'mustFinish.charge_card.timeoutMs: expected more than 0 to 600000 ms, got undefined',
  ],
  [
    { mustFinish: { charge_card: { timeout: 5 } } },
    "mustFinish.charge_card.timeout: unknown setting; did you mean 'timeoutMs'?",
  ],
  [{ mustFinish: 5 }, 'mustFinish: expected tools by name: { TOOL: { timeoutMs } }, got 5'],
  [
    { tools: undefined, mustFinish: { charge_card: { timeoutMs: 1 } } },
    "mustFinish: there is no tool 'charge_card'; pass it in `tools` too",
  ],
  [{ agent: 'mine', reply: undefined, mustFinish: { charge_card: { timeoutMs: 1 } } }, 'mustFinish: it needs `reply`'],
  [{ tools: [charge_card] }, 'tools: expected tools of the AI SDK by name, got a list'],
  [
    { store: undefined },
    "store: expected 'memory', 'sqlite:FILE' or 'postgres://HOST/DATABASE', or { backend }; got undefined",
  ],
  [
    { store: 'localhost:6379' },
    "store: expected 'memory', 'sqlite:FILE' or 'postgres://HOST/DATABASE', got 'localhost:6379'",
  ],
  [
    { store: { backend: 'postgres', url: 'localhost:5432' } },
    "store.url: expected an address such as 'postgres://host/database', got",
  ],
  [{ store: { backend: 'sqlite', path: 'a' } }, 'store.path: unknown setting'],
  [{ authenticate: undefined }, 'authenticate: expected a function from a request to its user; to try things out'],
  [{ reply: undefined }, 'reply: expected either `reply`, (turn) => streamText'],
  [{ reply: undefined, agent: {} }, 'agent: expected an agent, or the name of one, got an object'],
  [{ policy: 'wait' }, "policy: expected 'replace' or"],
  [{ history: {} }, 'history: expected your history (an object with load(), save())'],
  [{ concurrency: 0 }, 'concurrency: expected a whole number from 1, got 0'],
  [{ leaseMs: 0 }, 'leaseMs: expected more than 0'],
  [{ limits: { maxbodyBytes: 5 } }, "limits.maxbodyBytes: unknown setting; did you mean 'maxBodyBytes'?"],
  [{ origins: 'https://a.example' }, 'origins: expected a list'],
  [{ origins: ['https://a.example/x'] }, "origins: 'https://a.example/x' is not an origin"],
  [{ hosts: 'example.com' }, 'hosts: expected a list'],
  [{ api: 'api/chat' }, 'api: expected a path, such as \'/api/chat\', got "api/chat"'],
  [{ starterMayAnswer: 'no' }, 'starterMayAnswer: expected true or false'],
])('a chat refuses %o when it is created', (wrong, words) => {
  for (const create of [createChatHandler, createAgUiHandler])
    expect(refusal(() => create({ ...GIVEN, ...wrong } as never))).toContain(words);
});

test('a chat does not show the password of a store that it refuses', () => {
  expect(refusal(() => createChatHandler({ ...GIVEN, store: 'mysql://root:secret@db' }))).not.toContain('secret');
});

const store = undefined;
const access = createAccess({ authenticate: () => 'ada' });

test.each<[string, () => unknown, string]>([
  [
    'createAccess',
    () => createAccess({ authenticat: () => 'a' } as never),
    "authenticat: unknown setting; did you mean 'authenticate'?",
  ],
  [
    'createAccess',
    () => createAccess({ authenticate: 'ada' } as never),
    'authenticate: expected a function from a request',
  ],
  ['createTaskApi', () => createTaskApi({ access } as never), 'store: expected a task store, as from createTaskStore'],
  ['createTaskApi', () => createTaskApi({ access, store: 'postgres://u:p@h' } as never), 'got a string'],
  [
    'createTaskApi',
    () => createTaskApi({ access, store, agent: [] } as never),
    "agent: unknown setting; did you mean 'agents'?",
  ],
  [
    'createLogin',
    () => createLogin({ issecure: true } as never),
    "issecure: unknown setting; did you mean 'isSecure'?",
  ],
  [
    'createTokenAuthenticator',
    () => createTokenAuthenticator([{ sha256: 'x', name: 'ann', tenant: 'a', rights: [] }]),
    "sha256 of 'ann': expected 64 hex digits",
  ],
])('%s refuses what cannot work: %#', (_, create, words) => expect(refusal(create)).toContain(words));

test('what is created asynchronously rejects', async () => {
  await expect(serveMcp({ agents: {}, tenant: 'a' } as never)).rejects.toThrow(/^store: expected a task store/);
  await expect(createMcpHandler({ agents: {}, access } as never)).rejects.toThrow(/^store: expected a task store/);
  await expect(listen({ fetch: () => new Response() }, { prot: 80 } as never)).rejects.toThrow("did you mean 'port'?");
});

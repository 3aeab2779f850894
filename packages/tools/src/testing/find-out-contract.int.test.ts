import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { defineTool, type Tool } from '@whoa/core';
import { finished, notStarted, stillUnknown } from '@whoa/core/effects';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createFindOutContract, type FindOutSubject } from './find-out-contract.ts';

type Found = NonNullable<Tool['findOut']>;

const tool = (execute: Tool['execute'], findOut: Found): Tool =>
  defineTool({
    name: 'charge',
    description: 'Charges a card',
    inputSchema: z.object({ cents: z.number() }),
    effects: 'write',
    execute: execute as never,
    findOut: findOut as never,
  }) as Tool;

const input = { cents: 500 };

/** A table of one's own with a unique key. */
function withTable(findOut: (db: DatabaseSync, key: string) => ReturnType<Found>): FindOutSubject {
  const db = new DatabaseSync(':memory:', { timeout: 1_000 });
  db.exec('CREATE TABLE charges (key TEXT PRIMARY KEY, cents INTEGER)');
  const execute: Tool['execute'] = (given, { effectKey }) => {
    const { cents } = given as { cents: number };
    db.prepare('INSERT INTO charges VALUES (?, ?)').run(effectKey, cents);
    return `Charged ${cents}`;
  };
  return {
    tool: tool(execute, (_, { effectKey }) => findOut(db, effectKey)),
    input,
    disconnect: () => Promise.resolve(db.close()),
    [Symbol.asyncDispose]: () => Promise.resolve(db.isOpen ? db.close() : undefined),
  };
}

const VOID = 'INSERT INTO charges (key) VALUES (?) ON CONFLICT (key) DO UPDATE SET key = key RETURNING cents';
const LOOK = 'SELECT cents FROM charges WHERE key = ?';

const voiding = (db: DatabaseSync, key: string) => {
  const { cents } = db.prepare(VOID).get(key) as { cents: number | null };
  return cents === null ? notStarted() : finished(`Charged ${cents}`);
};

/** A payment provider, whose search may lag. */
async function withProvider(findOut: (found: { status: string } | undefined) => ReturnType<Found>) {
  const charges = new Map<string, { status: string }>();
  const answer = (request: IncomingMessage): { status: string } | undefined => {
    const key = request.url!.slice(1);
    if (request.method === 'POST') charges.set(key, { status: 'succeeded' });
    return charges.get(key);
  };
  const server = createServer((request, response) => response.end(JSON.stringify(answer(request) ?? null)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const ask = async (key: string, method: string, signal: AbortSignal) =>
    (await (await fetch(`${at}/${key}`, { method, signal, keepalive: false })).json()) as { status: string } | null;
  const close = (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    return Promise.resolve();
  };
  return {
    tool: tool(
      async (_, { effectKey, signal }) => (await ask(effectKey, 'POST', signal))!.status,
      async (_, { effectKey, signal }) => findOut((await ask(effectKey, 'GET', signal)) ?? undefined),
    ),
    input,
    disconnect: close,
    [Symbol.asyncDispose]: close,
  };
}

describe.each<[string, () => FindOutSubject | Promise<FindOutSubject>]>([
  ['a table with a unique key', () => withTable(voiding)],
  [
    'a payment provider',
    () => withProvider((found) => (found?.status === 'succeeded' ? finished('Charged') : stillUnknown())),
  ],
])('%s', (_, create) => {
  for (const { name, run } of createFindOutContract({ create })) test(`${name}`, run);
});

/** The cases that a tool fails. */
async function failures(create: () => FindOutSubject | Promise<FindOutSubject>): Promise<string[]> {
  const failed: string[] = [];
  for (const { id, run } of createFindOutContract({ create, timeoutMs: 200 })) await run().catch(() => failed.push(id));
  return failed;
}

test.each<[string, () => FindOutSubject | Promise<FindOutSubject>, string[]]>([
  [
    'says notStarted for an effect that is on its way',
    () => withTable((db, key) => (db.prepare(LOOK).get(key) === undefined ? notStarted() : finished('Charged'))),
    ['finds-out-late-effect'],
  ],
  [
    'takes any charge for its own',
    () => withTable((db) => (db.prepare('SELECT 1 FROM charges').get() ? finished('Charged') : stillUnknown())),
    ['finds-out-other-key'],
  ],
  [
    'repeats the charge',
    () =>
      withTable((db, key) => {
        db.prepare('INSERT OR IGNORE INTO charges VALUES (?, 500)').run(key);
        return finished('Charged');
      }),
    ['finds-out-other-key', 'finds-out-late-effect'],
  ],
  ['finds nothing', () => withTable(() => stillUnknown()), ['finds-out']],
  [
    'never returns',
    () => withTable(() => new Promise(() => {})),
    ['finds-out', 'finds-out-other-key', 'finds-out-late-effect', 'finds-out-in-time', 'finds-out-while-down'],
  ],
])('the contract finds a findOut that %s', async (_, create, expected) => {
  expect(await failures(create)).toEqual(expected);
});

test('the contract finds a findOut that takes a lost connection for an answer', async () => {
  const create = async (): Promise<FindOutSubject> => {
    const honest = await withProvider((found) => (found === undefined ? stillUnknown() : finished('Charged')));
    const findOut: Found = (given, context) =>
      Promise.resolve(honest.tool.findOut!(given, context)).catch(() => notStarted());
    return { ...honest, tool: { ...honest.tool, findOut } };
  };
  expect(await failures(create)).toEqual(['finds-out-while-down']);
});

test('a tool without findOut is named', async () => {
  const [first] = createFindOutContract({
    create: () => ({
      ...withTable(voiding),
      tool: { ...withTable(voiding).tool, findOut: undefined } as unknown as Tool,
    }),
  });
  await expect(first!.run()).rejects.toThrow("'charge' has no findOut");
});

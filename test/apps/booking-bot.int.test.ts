// The booking bot, started as its README shows: one process, or two on one store. The suite acts as its messenger.
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { listen } from '@whoa/server';
import { describe, expect, test } from 'vitest';
import { Calendar } from '../../examples/apps/booking-bot/calendar.ts';
import { until } from '../promises/fixture.ts';
import { borrowPostgres } from '../servers/borrow.ts';

const MAIN = process.env['BOOKING_BOT'] ?? join(import.meta.dirname, '../../examples/apps/booking-bot/main.ts');
const SECRET = 'shared with the messenger';
const OWNERS = { '+47 1': 'dr-berg', '+47 2': 'dr-dahl' };
const LATENCY_MS = 1_500;

interface Said {
  readonly role: string;
  readonly content: unknown;
}

/** How the model learns that another instance has taken over. */
const RESUMED = /restarted/;

/** The model: it follows the guest's words, and repeats the results of its tools. */
function think(messages: readonly Said[]) {
  const last = messages.at(-1)!;
  const users = messages.filter(({ role }) => role === 'user').map(({ content }) => JSON.stringify(content));
  const asked = users.findLast((text) => !RESUMED.test(text))!;
  const [at = '09:00'] = /\d\d:\d\d/.exec(asked) ?? [];
  const hasHeld = last.role === 'tool' && /is held/.test(JSON.stringify(last.content));
  // Holds a slot, and then searches for a better one.
  if (hasHeld) return { parts: [{ call: 'find_free', input: {} }] };
  // Another instance has taken over, and its message comes after the tools' results. Calls that did not start are retried.
  const told = messages.findLast(({ role }) => role === 'tool');
  const isKnown = told !== undefined && !/Not started/.test(String(told.content));
  if (RESUMED.test(users.at(-1)!) && isKnown) return { parts: [{ text: `Done: ${String(told.content)}` }] };
  if (last.role === 'tool') return { parts: [{ text: `Done: ${String(last.content)}` }] };
  if (/free/i.test(asked)) return { parts: [{ call: 'find_free', input: {} }] };
  if (/hold/i.test(asked)) return { parts: [{ text: 'I hold it. ' }, { call: 'hold', input: { at } }] };
  if (/book/i.test(asked)) return { parts: [{ call: 'book', input: { at } }] };
  return { parts: [{ text: 'Hello!' }] };
}

async function startInstance(env: NodeJS.ProcessEnv): Promise<{ url: string; kill: () => Promise<void> }> {
  const flags = MAIN.includes('examples') ? ['--conditions=@whoa/source'] : [];
  const child = spawn(process.execPath, [...flags, '--no-warnings', MAIN], {
    env: { ...process.env, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [printed] = (await Promise.race([once(child.stdout, 'data'), exited])) as [Buffer];
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { url: String(printed).trim(), kill };
}

async function openTown(store: string, instances: number) {
  const stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), 'whoa-bookings-'));
  stack.defer(() => rmSync(folder, { recursive: true }));
  const provider = await startLoopbackProvider({
    script: ({ body }) => think((body as { messages: readonly Said[] }).messages),
  });
  stack.defer(() => provider.close());
  const sent: string[] = [];
  const messenger = stack.use(
    await listen({
      async fetch(request) {
        const { to, text } = (await request.json()) as { to: string; text: string };
        sent.push(`${to}: ${text}`);
        return new Response();
      },
    }),
  );
  const calendar = stack.use(new Calendar({ file: join(folder, 'bookings.db'), latencyMs: 0 }));
  const env = {
    STORE_URL: store,
    DATABASE: join(folder, 'bookings.db'),
    CALENDAR_MS: `${LATENCY_MS}`,
    OWNERS: JSON.stringify(OWNERS),
    SEND_URL: messenger.url,
    WEBHOOK_SECRET: SECRET,
    OPENAI_BASE_URL: provider.url,
    OPENAI_API_KEY: 'none',
  };
  const bots = await Promise.all(
    Array.from({ length: instances }, (_, i) => startInstance({ ...env, INSTANCE: `bot-${i}` })),
  );
  for (const bot of bots) stack.defer(bot.kill);
  let count = 0;
  /** Delivers a message to an instance. */
  const deliver = async (
    text: string,
    to: { instance?: number; number?: string; id?: string; signature?: string } = {},
  ) => {
    const { instance = 0, number = '+47 1', id = `m${++count}` } = to;
    const body = JSON.stringify({ messageId: id, from: 'ada', to: number, text });
    const headers = { 'x-signature': to.signature ?? createHmac('sha256', SECRET).update(body).digest('hex') };
    const { url } = bots[instance % bots.length]!;
    return (await fetch(url, { method: 'POST', headers, body })).status;
  };
  const state = (owner: string, at: string) => calendar.slots(owner).find((slot) => slot.at === at)?.state;
  return { provider, sent, calendar, bots, deliver, state, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const KINDS = {
  'one process': () =>
    Promise.resolve({ url: 'memory:', instances: 1, [Symbol.asyncDispose]: () => Promise.resolve() }),
  'two instances on Postgres': async () => Object.assign(await borrowPostgres(), { instances: 2 }),
};

describe.each(Object.keys(KINDS) as (keyof typeof KINDS)[])('%s', (kind) => {
  test('a guest asks, changes their mind, books, holds and stops', async () => {
    await using server = await KINDS[kind]();
    await using town = await openTown(server.url, server.instances);
    const { sent, deliver, calendar, state } = town;

    // Deliveries that are forged, or that this bot cannot answer.
    expect(await deliver('Hi', { signature: 'forged' })).toBe(401);
    expect(await deliver('Hi', { number: '+47 9' })).toBe(404);
    expect(await deliver('', {})).toBe(400);

    // A delivery that two instances get is answered once; each number has its own calendar.
    expect(await deliver('Book 09:00', { id: 'twice', number: '+47 2' })).toBe(200);
    expect(await deliver('Book 09:00', { id: 'twice', number: '+47 2', instance: 1 })).toBe(200);
    await until(() => sent.length === 1);
    expect(sent).toEqual(['ada: Done: 09:00 is booked for ada.']);
    expect([state('dr-dahl', '09:00'), state('dr-berg', '09:00')]).toEqual(['booked', undefined]);
    expect(calendar.log('dr-dahl')).toEqual(['book 09:00 started', 'book 09:00 done']);

    // A second message supersedes the first, through the other instance. The search may end, but only the second is answered.
    await deliver('What is free?');
    await until(() => calendar.log('dr-berg').length === 1);
    await deliver('Good morning', { instance: 1 });
    await until(() => sent.length === 2);
    expect(sent[1]).toBe('ada: Hello!');

    // A booking must finish: the second message waits for it, and its answer knows about it.
    await deliver('Book 10:00');
    await until(() => calendar.log('dr-berg').includes('book 10:00 started'));
    await deliver('Good evening', { instance: 1 });
    await until(() => sent.length === 3);
    expect([sent[2], state('dr-berg', '10:00')]).toEqual(['ada: Hello!', 'booked']);
    expect(calendar.log('dr-berg').filter((what) => what.startsWith('book'))).toHaveLength(2);
    expect(JSON.stringify(town.provider.requests.at(-1)!.body)).toContain('10:00 is booked for ada.');

    // Stop, through the other instance, while a slot is held: the hold is released, and the guest gets a report.
    await deliver('Please hold 11:00');
    await until(() => state('dr-berg', '11:00') === 'held' && calendar.log('dr-berg').at(-1) === 'find started');
    await deliver('Stop!', { instance: 1 });
    await until(() => sent.length === 4);
    expect(state('dr-berg', '11:00')).toBe('free');
    expect(sent[3]).toBe('ada: Stopped. Nothing is held for you any more.');
    expect(calendar.log('dr-berg').filter((what) => what === 'release 11:00')).toHaveLength(1);
    expect(town.provider.requests.map(({ refusal }) => refusal).filter(Boolean)).toEqual([]);

    // An instance dies during a search: the other one answers.
    if (server.instances === 1) return;
    const before = calendar.log('dr-berg').length;
    await deliver('What is free now?');
    await until(() => calendar.log('dr-berg').length > before);
    await town.bots[0]!.kill();
    await until(() => sent.length === 5);
    expect(sent[4]).toMatch(/^ada: Done: Free: 09:00, 11:00, 14:00, 15:00/);
  });
});

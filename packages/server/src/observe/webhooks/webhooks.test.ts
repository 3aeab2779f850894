import { createHmac } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { createVirtualWorld } from '@whoa/core/testing';
import { createMemoryStore, createRunner, type TaskStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { type Around, alterStore } from '../../../../../test/tasks/altered-store.ts';
import { claimFor, expireSessions } from '../../../../../test/tasks/claimed.ts';
import { type Answer, type ReceivedHook, startHookReceiver } from '../../../../../test/telemetry/hook-receiver.ts';
import { createPublicLookup } from './public-address.ts';
import { createWebhooks, WEBHOOKS_TENANT, type Webhook, type WebhookAttempt } from './webhooks.ts';

const key = (letter: string): string => `whsec_${Buffer.from(letter.repeat(32)).toString('base64')}`;
const SECRET = key('a');
const TASK = { tenant: 'acme', agent: 'assistant', input: 'a secret plan' };

interface SetUp {
  readonly answer?: Answer;
  readonly webhook?: Partial<Webhook>;
  readonly around?: Around;
  readonly lookup?: LookupFunction;
  /** A host to send to instead, which must be public. */
  readonly host?: string;
  readonly maxAttempts?: number;
}

/** A store, webhooks to a service on this machine, and the result of each attempt. */
async function setUp(options: SetUp = {}) {
  const { answer, webhook, around = (_name, call) => call(), lookup, host, maxAttempts = 3 } = options;
  const world = createVirtualWorld();
  const store = createMemoryStore({ world, maxAttempts });
  const receiver = await startHookReceiver(answer);
  const outside = { url: `https://${host}:${new URL(receiver.url).port}/` };
  const target = host === undefined ? { url: receiver.url, allowPrivateAddresses: true } : outside;
  const attempts: WebhookAttempt[] = [];
  const errors: unknown[] = [];
  const waiting = new Set<() => void>();
  const open = (instance: Around = around) => {
    const webhooks = createWebhooks({
      store: alterStore(store, instance),
      webhooks: [{ secret: SECRET, ...target, ...webhook }],
      onAttempt(attempt) {
        attempts.push(attempt);
        for (const look of waiting) look();
      },
      onError: (error) => errors.push(error),
      ...(lookup && { lookup }),
      world,
    });
    onTestFinished(() => webhooks[Symbol.asyncDispose]());
    return webhooks;
  };
  /** Resolves when `count` attempts have ended. */
  const attempted = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const look = (): void => {
        if (attempts.length < count) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });
  return { world, store, receiver, attempts, errors, open, attempted };
}

async function create(store: TaskStore, more: object = {}): Promise<{ tenant: string; id: string }> {
  const receipt = await store.create({ ...TASK, ...more });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  return { tenant: TASK.tenant, id: receipt.task.id };
}

async function finish(store: TaskStore, status: 'success' | 'failed' = 'success'): Promise<string> {
  const { id } = await create(store);
  const error = { message: 'no room', code: 'NO_ROOM' };
  await store.finish(await claimFor(store, id, { worker: id }), {
    status,
    answer: 'hidden',
    ...(status === 'failed' && { error }),
  });
  return id;
}

/** Verifies a request as a receiver does. */
function isSigned({ headers, body }: ReceivedHook, secret: string): boolean {
  const bytes = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
  const expected = `v1,${createHmac('sha256', bytes).update(signed).digest('base64')}`;
  return headers['webhook-signature']!.split(' ').includes(expected);
}

test('every end of a task is reported once, signed, without its content', async () => {
  const { world, store, receiver, open, attempted } = await setUp({ maxAttempts: 1 });
  await open().start();
  // A second process with the same webhook.
  await open().start();
  const success = await finish(store);
  const failed = await finish(store, 'failed');
  const unstarted = await create(store);
  await store.cancel(unstarted, { message: 'never mind' });
  const running = await create(store);
  const runner = createRunner({ store, world, agents: { assistant: () => new Promise(() => {}) } });
  const working = runner.runExisting(running);
  await store.cancel(running, { message: 'enough' }, { mode: 'kill' });
  await working;
  const crashed = await create(store);
  for (let i = 0; i < 3; i++) {
    await claimFor(store, crashed.id, { worker: `dead ${i}`, leaseMs: 1_000 });
    await expireSessions(store, world, 1_000);
    await world.clock.advance(2_000);
  }
  await store.claim(crashed.id, { session: 's', worker: 'next', leaseMs: 1_000, claim: 'c' });
  await attempted(5);
  await runner.stop();
  const seen = new Map(receiver.hooks.map((hook) => [hook.event.data['id'], hook]));
  expect([success, failed, unstarted.id, running.id, crashed.id].map((id) => seen.get(id)?.event.type)).toEqual([
    'task.success',
    'task.failed',
    'task.cancelled',
    'task.cancelled',
    'task.failed',
  ]);
  expect(receiver.hooks).toHaveLength(5);
  expect(receiver.hooks.every((hook) => isSigned(hook, SECRET))).toBe(true);
  expect(receiver.hooks.map(({ body }) => body).join()).not.toMatch(/secret plan|hidden/);
  expect(seen.get(failed)).toMatchObject({
    headers: { 'webhook-id': failed, 'content-type': 'application/json' },
    event: { data: { tenant: 'acme', agent: 'assistant', status: 'failed', error: { code: 'NO_ROOM' } } },
  });
});

test('an attempt that fails is repeated later with the same id, until one succeeds', async () => {
  const { world, store, receiver, attempts, open, attempted } = await setUp({
    answer: (index) => ({ status: index < 2 ? 500 : 200 }),
  });
  await open().start();
  const id = await finish(store);
  await attempted(1);
  expect(attempts[0]).toMatchObject({ taskId: id, attempt: 1, result: 'failed', error: 'the response was 500' });
  await world.clock.advance(attempts[0]!.nextInMs! + 2_000);
  await attempted(2);
  await world.clock.advance(attempts[1]!.nextInMs! + 2_000);
  await attempted(3);
  expect(attempts.map(({ attempt, result }) => [attempt, result])).toEqual([
    [1, 'failed'],
    [2, 'failed'],
    [3, 'delivered'],
  ]);
  expect(new Set(receiver.hooks.map(({ headers, body }) => headers['webhook-id'] + body)).size).toBe(1);
  expect((await store.list({ tenant: WEBHOOKS_TENANT })).tasks).toHaveLength(3);
});

test('a redirect is not followed, and a service that is gone is not asked again', async () => {
  const other = await startHookReceiver();
  const { store, attempts, open, attempted } = await setUp({
    answer: (index) => (index === 0 ? { status: 302, headers: { location: other.url } } : { status: 410 }),
  });
  await open().start();
  await finish(store);
  await attempted(1);
  await finish(store);
  await attempted(2);
  expect(attempts.map(({ error, nextInMs }) => [error, nextInMs !== undefined])).toEqual([
    ['the response was 302', true],
    ['the response was 410', false],
  ]);
  expect(other.connections()).toBe(0);
});

test('a service that never responds is given up in time', async () => {
  const { world, store, receiver, attempts, open, attempted } = await setUp({ answer: () => undefined });
  await open().start();
  await finish(store);
  await receiver.received(1);
  await world.clock.advance(15_000);
  await attempted(1);
  expect(attempts[0]).toMatchObject({ result: 'failed', error: 'no response within 15000 ms' });
});

test('a process that ends during an attempt leaves it to another one', async () => {
  const { world, store, receiver, attempts, open, attempted } = await setUp({
    answer: (index) => (index === 0 ? undefined : { status: 204 }),
  });
  const first = open();
  await first.start();
  const id = await finish(store);
  await receiver.received(1);
  await first[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  expect(attempts).toEqual([]);
  await open().start();
  await world.clock.advance(20_000);
  await attempted(1);
  expect(attempts).toMatchObject([{ taskId: id, attempt: 1, result: 'delivered' }]);
});

test('a process that is killed during an attempt loses nothing', async () => {
  const { world, store, receiver, attempts, open, attempted } = await setUp({
    answer: (index) => (index === 0 ? undefined : { status: 204 }),
  });
  let isDead = false;
  const killed = open((_name, call) => (isDead ? Promise.reject(new Error('killed')) : call()));
  await killed.start();
  const id = await finish(store);
  await receiver.received(1);
  isDead = true;
  await open().start();
  // Its lease, and another one because no process was there to see the first expire.
  await world.clock.advance(60_000);
  await receiver.received(2);
  await attempted(1);
  expect(attempts).toMatchObject([{ taskId: id, attempt: 1, result: 'delivered' }]);
  expect(receiver.hooks.map(({ headers }) => headers['webhook-id'])).toEqual([id, id]);
  const ended = killed[Symbol.asyncDispose]();
  await world.clock.advance(60_000);
  await ended;
});

test('a cancelled delivery is not repeated', async () => {
  const { world, store, receiver, open } = await setUp({ answer: () => undefined });
  await open().start();
  await finish(store);
  await receiver.received(1);
  const [delivery] = (await store.list({ tenant: WEBHOOKS_TENANT })).tasks;
  await store.cancel({ tenant: WEBHOOKS_TENANT, id: delivery!.id }, {}, { mode: 'now' });
  await world.clock.advance(60_000);
  expect((await store.list({ tenant: WEBHOOKS_TENANT })).tasks).toMatchObject([{ status: 'cancelled' }]);
  expect(receiver.hooks).toHaveLength(1);
});

test('tasks that ended unwatched in the last hour are found at the start, and reported once', async () => {
  const { world, store, receiver, open, attempted } = await setUp();
  await finish(store);
  await world.clock.advance(3_600_001);
  const id = await finish(store);
  const first = open();
  await first.start();
  await attempted(1);
  await first[Symbol.asyncDispose]();
  await open().start();
  await world.clock.advance(60_000);
  expect(receiver.hooks.map(({ event }) => event.data['id'])).toEqual([id]);
});

test('an end is found again after the store has failed', async () => {
  let failures = 3;
  const { world, store, receiver, errors, open, attempted } = await setUp({
    around: (name, call) => {
      const fails = (name === 'get' || name === 'list') && failures-- > 0;
      return fails ? Promise.reject(new Error('down')) : call();
    },
  });
  await open().start();
  await finish(store);
  await world.clock.advance(60_000);
  await attempted(1);
  expect(receiver.hooks).toHaveLength(1);
  expect(errors.length).toBeGreaterThan(0);
});

test('only the wanted ends are reported, and both secrets sign while one replaces the other', async () => {
  const { store, receiver, open, attempted } = await setUp({
    webhook: { events: ['failed'], secret: [key('b'), SECRET] },
  });
  await open().start();
  await finish(store);
  await finish(store, 'failed');
  await attempted(1);
  expect(receiver.hooks).toHaveLength(1);
  const [hook] = receiver.hooks;
  expect([isSigned(hook!, SECRET), isSigned(hook!, key('b')), isSigned(hook!, key('c'))]).toEqual([true, true, false]);
});

test('a task of another tenant that names the agent of a webhook sends nothing', async () => {
  const { world, store, receiver, open, attempted } = await setUp();
  await open().start();
  await finish(store);
  await attempted(1);
  const [delivery] = (await store.list({ tenant: WEBHOOKS_TENANT })).tasks;
  const forged = await store.create({
    tenant: 'mallory',
    agent: delivery!.agent,
    input: { id: 'x', attempt: 1, body: '{}' },
  });
  await world.clock.advance(20_000);
  const { id } = (forged as { task: { id: string } }).task;
  expect(await store.get({ tenant: 'mallory', id })).toMatchObject({ status: 'failed' });
  expect(receiver.hooks.some(({ body }) => body === '{}')).toBe(false);
});

const resolveTo =
  (...addresses: readonly string[]): LookupFunction =>
  (_host, _options, callback) =>
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

const INSIDE: readonly [host: string, lookup?: LookupFunction][] = [
  ['127.0.0.1'],
  ['2130706433'],
  ['0x7f.1'],
  ['localhost'],
  ['[::1]'],
  ['[::]'],
  ['[::ffff:127.0.0.1]'],
  ['[64:ff9b::7f00:1]'],
  ['[2002:7f00:1::]'],
  ['[fd00::1]'],
  ['[fe80::1]'],
  ['[ff02::1]'],
  ['0.0.0.0'],
  ['10.0.0.1'],
  ['100.64.0.1'],
  ['169.254.169.254'],
  ['172.16.0.1'],
  ['192.168.0.1'],
  ['224.0.0.1'],
  ['255.255.255.255'],
  ['rebound.example', resolveTo('127.0.0.1')],
  ['both.example', resolveTo('93.184.215.14', '127.0.0.1')],
  ['mapped.example', resolveTo('::ffff:10.0.0.1')],
  ['nothing.example', resolveTo()],
];

test.each(INSIDE)('no webhook is sent to %s', async (host, lookup) => {
  const { store, receiver, attempts, open, attempted } = await setUp({ host, ...(lookup && { lookup }) });
  await open().start();
  await finish(store);
  await attempted(1);
  expect(attempts).toMatchObject([{ result: host === 'nothing.example' ? 'failed' : 'refused' }]);
  expect(receiver.connections()).toBe(0);
});

test('a name is resolved once, and the socket gets the checked address', () => {
  const addresses = ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'];
  let asked = 0;
  const lookup = createPublicLookup((...args) => {
    // Inside when it is asked for again.
    resolveTo(...(asked++ === 0 ? addresses : ['127.0.0.1']))(...args);
  });
  lookup('example.com', { all: true }, (error, found) => {
    expect([error, asked]).toEqual([null, 1]);
    expect(found).toEqual([expect.objectContaining({ address: addresses[0] }), expect.objectContaining({ family: 6 })]);
  });
  lookup('example.com', {}, (error) => expect(error).toMatchObject({ code: 'PRIVATE_ADDRESS' }));
  expect(asked).toBe(2);
});

test.each([
  [{ url: 'http://example.com' }, 'webhooks[0].url: expected https://'],
  [{ url: 'ftp://example.com', allowPrivateAddresses: true }, 'webhooks[0].url: expected https://'],
  [{ url: 'nonsense' }, 'webhooks[0].url: expected https://'],
  [{ url: 'https://ann:pw@example.com' }, 'without a user'],
  [{ secret: 'hunter2' }, 'webhooks[0].secret: expected whsec_ and 24 to 64 bytes'],
  [{ secret: [] }, 'webhooks[0].secret: expected a secret, or a list'],
  [{ secret: `whsec_${'!'.repeat(48)}` }, 'webhooks[0].secret: expected whsec_'],
  [{ events: ['running'] }, "webhooks[0].events[0]: expected 'success' or 'failed' or 'cancelled'"],
  [{ retries: 3 }, 'webhooks[0].retries: unknown setting'],
])('a webhook with %o is rejected', (given, message) => {
  const webhook = { url: 'https://example.com', secret: SECRET, ...given } as Webhook;
  expect(() => createWebhooks({ store: createMemoryStore(), webhooks: [webhook] })).toThrow(message);
});

test('questions are reported if that is wanted: asked, answered, or closed without an answer', async () => {
  const events = ['question.asked', 'question.answered', 'question.closed'] as const;
  const { world, store, receiver, open, attempted } = await setUp({ webhook: { events } });
  await open().start();
  const { id } = await create(store, { startedBy: 'ann' });
  const claim = await claimFor(store, id, { worker: 'w' });
  const asks = ['q1', 'q2'].map((unique) => ({
    id: `${id}.${unique}`,
    callId: unique,
    kind: 'approve' as const,
    shown: 'digest',
    ...(unique === 'q2' && { expiresMs: 60_000 }),
  }));
  await store.append(claim, { after: 0, events: ['asked'], asks });
  await attempted(2);
  const { position, orderNumber } = (await store.get({ tenant: TASK.tenant, id }))!;
  await store.park(claim, { position, orderNumber });
  await world.clock.advance(60_000);
  await store.sweep();
  await attempted(3);
  await store.answer({ tenant: TASK.tenant, id: `${id}.q1` }, { value: { decision: 'no', why: 'private' }, by: 'bob' });
  await attempted(4);
  const data = (unique: string) => ({ id: `${id}.${unique}`, task: id, tenant: TASK.tenant, startedBy: 'ann' });
  expect(receiver.hooks.map(({ event }) => event).toSorted((a, b) => (a.type < b.type ? -1 : 1))).toMatchObject([
    { type: 'question.answered', data: { ...data('q1'), by: 'bob' } },
    { type: 'question.asked', data: data('q1') },
    { type: 'question.asked', data: data('q2') },
    { type: 'question.closed', data: { ...data('q2'), why: 'expired' } },
  ]);
  for (const hook of receiver.hooks) {
    expect(isSigned(hook, SECRET)).toBe(true);
    expect(hook.headers['webhook-id']).not.toContain('.');
    expect(hook.body).not.toMatch(/private|digest/);
  }
});

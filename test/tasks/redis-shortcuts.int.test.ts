// A shortcut must do exactly what its rule does, so histories with and without shortcuts must leave the same keys and results.
import type { TaskRecord, TaskStore } from '@whoa/tasks';
import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLibrary, type Library, RULES } from '../../packages/tasks/src/stores/redis/library.ts';
import { openRedisStore } from '../../packages/tasks/src/stores/redis.ts';
import { type BorrowedServer, borrowRedis } from '../servers/borrow.ts';
import { createExactLibrary } from './stores-agree/time.ts';

const SWITCH = 'local HAS_SHORTCUTS = true';
const BUSY_MS = 60_000;
const TENANT = 'acme';

const step = fc.oneof(
  fc.record({
    type: fc.constant('create' as const),
    tenant: fc.constantFrom(TENANT, 'other'),
    priority: fc.constantFrom(0, 9),
    conversation: fc.constantFrom(undefined, undefined, undefined, 'c'),
    input: fc.constantFrom('short', 'x'.repeat(100)),
  }),
  fc.record({
    type: fc.constant('take' as const),
    limit: fc.constantFrom(1, 3),
    maxBytes: fc.constantFrom(10, 1_000_000),
  }),
  fc.record({
    type: fc.constant('cancel' as const),
    task: fc.nat(),
    mode: fc.constantFrom('graceful' as const, 'now' as const, 'kill' as const),
    undo: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('finish' as const),
    task: fc.nat(),
    status: fc.constantFrom('success' as const, 'failed' as const),
    answer: fc.constantFrom('ok', 'x'.repeat(100)),
  }),
  fc.record({ type: fc.constantFrom('send' as const, 'release' as const, 'append' as const), task: fc.nat() }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

let server: BorrowedServer;
let client: Redis;
beforeAll(async () => {
  server = await borrowRedis();
  client = new Redis(server.port, '127.0.0.1');
});
afterAll(async () => {
  client.disconnect();
  await server[Symbol.asyncDispose]();
});

/** Everything under a prefix, without it. */
async function readKeys(prefix: string): Promise<Record<string, unknown>> {
  const all = await client.keys(`${prefix}:*`);
  const read = async (key: string): Promise<unknown> => {
    switch (await client.type(key)) {
      case 'hash':
        return client.hgetall(key);
      case 'list':
        return client.lrange(key, 0, -1);
      case 'set':
        return (await client.smembers(key)).toSorted();
      case 'zset':
        return client.zrange(key, '0', '-1', 'WITHSCORES');
      default:
        return client.get(key);
    }
  };
  const entries = await Promise.all(all.map(async (key) => [key.slice(prefix.length), await read(key)] as const));
  return Object.fromEntries(entries);
}

class History {
  readonly answers: unknown[] = [];
  readonly #store: TaskStore;
  readonly #tasks: TaskRecord[] = [];
  readonly #claims = new Map<string, { id: string; epoch: number; session: string; claim: string }>();
  #takes = 0;
  #requests = 0;

  constructor(store: TaskStore) {
    this.#store = store;
  }

  async run(steps: readonly Step[]): Promise<void> {
    for (const one of steps) {
      this.answers.push(await this.#runStep(one).catch((error: { code?: string }) => error.code ?? error));
    }
  }

  async #runStep(one: Step): Promise<unknown> {
    const store = this.#store;
    const nonce = `nonce ${this.#requests++}`;
    if (one.type === 'create') {
      const { tenant, priority, input, conversation } = one;
      const wanted = { tenant, agent: 'a', input, priority, ...(conversation && { conversation }) };
      const receipt = await store.create(wanted, { nonce, policy: 'queue' });
      if (receipt.result === 'created') this.#tasks.push(receipt.task);
      return receipt;
    }
    if (one.type === 'take') {
      const { limit, maxBytes } = one;
      const about = { domain: 0, session: 's', worker: 'w', leaseMs: 60_000, agents: ['a'], claim: nonce };
      const result = await store.take({ ...about, takeNumber: ++this.#takes, limit, maxBytes });
      if (result.result === 'taken') for (const { claim } of result.tasks) this.#claims.set(claim.id, claim);
      return result;
    }
    const task = this.#tasks[one.task % this.#tasks.length];
    if (task === undefined) return undefined;
    const ref = { tenant: task.tenant, id: task.id };
    const none = { id: task.id, epoch: 1, session: 's', claim: 'none' };
    const claim = this.#claims.get(task.id) ?? none;
    switch (one.type) {
      case 'cancel':
        return store.cancel(ref, { by: nonce }, { mode: one.mode, undo: one.undo });
      case 'finish':
        return store.finish(claim, { status: one.status, answer: one.answer } as { status: 'success'; answer: string });
      case 'send':
        return store.send(ref, { type: 'cancel-call', callId: 'c' }, { nonce });
      case 'release':
        return store.release(claim);
      case 'append':
        return store.append(claim, { after: 0, events: ['said'] });
    }
  }
}

let histories = 0;

async function run(library: Library, steps: readonly Step[]) {
  const prefix = `shortcuts-${histories++}`;
  // Time passes with every request, the same for both.
  let now = 1_700_000_000_000;
  const options = { url: server.url, prefix, shards: 1, timeoutMs: BUSY_MS, maxReady: 100 };
  await using store = openRedisStore(options, () => now++, library);
  const history = new History(store);
  await history.run(steps);
  const keys = await readKeys(prefix);
  if (Object.keys(keys).length > 0) await client.unlink(await client.keys(`${prefix}:*`));
  return { answers: history.answers, keys };
}

test('histories without shortcuts leave the same keys and results', async () => {
  expect(RULES).toContain(SWITCH);
  const [exact, slow] = [
    createExactLibrary(),
    createExactLibrary(RULES.replace(SWITCH, 'local HAS_SHORTCUTS = false')),
  ];
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30, size: 'max' }), async (steps) => {
    expect(await run(slow, steps)).toEqual(await run(exact, steps));
  });
  await fc.assert(property, { seed: 1, numRuns: 200 });
});

test('the switch is one: without shortcuts, more fields are read', async () => {
  const countReads = async (library: Library): Promise<number> => {
    await client.config('RESETSTAT');
    const steps = ['create', 'take', 'cancel'].map((type) => ({
      type,
      tenant: TENANT,
      priority: 0,
      input: 'short',
      limit: 1,
      maxBytes: 1_000_000,
      task: 0,
      mode: 'now',
      undo: false,
    })) as Step[];
    await run(library, steps);
    return Number(/^cmdstat_hgetall:calls=(\d+)/mu.exec(await client.info('commandstats'))?.[1]);
  };
  const [fast, slow] = [createLibrary(RULES), createLibrary(RULES.replace(SWITCH, 'local HAS_SHORTCUTS = false'))];
  expect(await countReads(slow)).toBeGreaterThan(await countReads(fast));
});

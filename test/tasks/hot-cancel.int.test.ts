import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { createPostgresStore, createSqliteStore } from '@whoa/tasks/internal';
import { afterEach, expect, test } from 'vitest';
import { borrowPostgres } from '../servers/borrow.ts';
import { temporaryFolder } from './child.ts';
import { running } from './held-task.ts';

const POSTERS = 64;
const CONVERSATION = { tenant: 'acme', conversation: 'hot' };
const BUSY_MS = 60_000;

let stack = new AsyncDisposableStack();
afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

interface Case {
  readonly name: string;
  readonly cancels: number;
  /** Requests compete inside a server, so a cancel could lose to posts. */
  readonly isServer: boolean;
  /** Opens a client for all posts, and one for the user who cancels. */
  open(): Promise<readonly [TaskStore, TaskStore]>;
}

const CASES: readonly Case[] = [
  {
    name: 'memory',
    cancels: 10,
    isServer: false,
    open() {
      const store = stack.use(createMemoryStore());
      return Promise.resolve([store, store]);
    },
  },
  {
    name: 'SQLite',
    cancels: 10,
    isServer: false,
    open() {
      const { file } = stack.use(temporaryFolder());
      return Promise.resolve([stack.use(createSqliteStore({ file })), stack.use(createSqliteStore({ file }))]);
    },
  },
  {
    name: 'Postgres',
    cancels: 40,
    isServer: true,
    async open() {
      const { url } = stack.use(await borrowPostgres());
      const options = { url, maxConnections: 8, statementTimeoutMs: BUSY_MS };
      return [stack.use(createPostgresStore(options)), stack.use(createPostgresStore(options))];
    },
  },
];

interface Race {
  readonly posted: readonly number[];
  readonly cancelled: readonly number[];
  readonly answers: ReadonlySet<string>;
}

/** 64 clients post as fast as they can while another one cancels repeatedly. */
async function compete([posting, cancelling]: readonly [TaskStore, TaskStore], cancels: number): Promise<Race> {
  const [posted, cancelled, answers] = [[] as number[], [] as number[], new Set<string>()];
  const post = (): Promise<unknown> =>
    timed(posted, () => posting.create({ ...CONVERSATION, agent: 'a', input: 'x' }, { policy: 'replace' }));
  await Promise.all(Array.from({ length: POSTERS }, post));
  let isOver = false;
  const posters = Array.from({ length: POSTERS }, async () => {
    while (!isOver) await post();
  });
  try {
    for (let i = 0; i < cancels; i++) {
      answers.add((await timed(cancelled, () => cancelling.cancel(CONVERSATION))).result);
    }
  } finally {
    isOver = true;
    await Promise.all(posters);
  }
  return { posted, cancelled, answers };
}

async function timed<T>(times: number[], work: () => Promise<T>): Promise<T> {
  const started = performance.now();
  const result = await work();
  times.push(performance.now() - started);
  return result;
}

function p95(times: readonly number[]): number {
  return times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.95)]!;
}

test.for(CASES)('a cancel of a conversation on $name does not starve while 64 clients post into it', async (one) => {
  const clients = await one.open();
  const [posting] = clients;
  const { by } = await running(posting, CONVERSATION);
  const { posted, cancelled, answers } = await compete(clients, one.cancels);
  expect(answers).not.toContain('unknown');
  expect(answers).not.toContain('too-late');
  const [post, cancel] = [p95(posted), p95(cancelled)];
  console.log(`${one.name}: ${posted.length} posts, p95 ${post.toFixed(1)} ms; cancels, p95 ${cancel.toFixed(1)} ms`);
  // Compare them with each other, not with a clock: a busy machine slows down both.
  if (one.isServer) expect(cancel).toBeLessThanOrEqual(3 * post);

  const left = await posting.conversation(CONVERSATION);
  const waiting = left?.waiting ?? [];
  expect(left?.current).toBe(by.id);
  expect(waiting.length).toBeLessThanOrEqual(1);
  const { statuses } = await posting.counts(CONVERSATION);
  const { init, running: run, cancelling: stops, cancelled: ended } = statuses;
  expect({ init, run, stops, ended }).toEqual({
    init: waiting.length,
    run: 0,
    stops: 1,
    ended: posted.length - waiting.length,
  });
  expect((await posting.finish(by, { status: 'cancelled' })).successor).toBe(waiting[0]);
});

import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { type Around, alterStore } from '../../../../test/tasks/altered-store.ts';
import { claimFor } from '../../../../test/tasks/claimed.ts';
import type { Frame } from '../bus/hint.ts';
import { StoreBusyError } from '../errors.ts';
import { createMemoryStore } from '../ledger/memory.ts';
import { hashClaim } from '../ledger/rules/claim-hash.ts';
import type { Hint } from '../store.ts';
import { type FollowEvent, type FollowOptions, followTask } from './follow.ts';

/** The longest that a reader waits for something no hint came of. */
const HEALED_MS = 10_000;

/** A task that a worker has; each `write` is one entry more. */
async function setUp(around: Around = (_name, call) => call()) {
  const world = createVirtualWorld();
  const memory = createMemoryStore({ world });
  const asked: string[] = [];
  const store = alterStore(memory, (name, call, args) => {
    asked.push(name);
    return around(name, call, args);
  });
  const receipt = await memory.create({ tenant: 'acme', agent: 'a', input: 'x' });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  const { id, tenant } = receipt.task;
  const ref = { tenant, id };
  const by = await claimFor(memory, id, { worker: 'w' });
  let written = 0;
  const write = async (count = 1): Promise<void> => {
    const events = Array.from({ length: count }, (_, index) => ({ type: 'mine', n: written + index + 1 }));
    await memory.append(by, { after: written, events });
    written += count;
    tell();
  };
  /** As its worker does. */
  const tell = (): void => {
    const kept = { kept: written, position: written, from: written, to: written };
    const frame = { epoch: by.epoch, claimHash: hashClaim(by.claim), ...kept, at: world.clock.now(), events: [] };
    memory.show({ readers: () => ['memory'], next: () => ({ type: 'frame', ...ref, frame }) });
  };
  const finish = () => memory.finish(by, { status: 'success' });
  const follow = (options: FollowOptions = {}) => followTask(store, ref, { world, ...options });
  const counted = (name: string): number => asked.filter((one) => one === name).length;
  return { world, memory, store, ref, by, write, finish, follow, asked, counted };
}

type Shown = number | 'end' | 'taken-back' | undefined;

const toNumber = (seen: FollowEvent | undefined): Shown => (seen?.type === 'entry' ? seen.position : seen?.type);

/** Everything that is seen, as it comes. */
function collect(following: AsyncIterable<FollowEvent>) {
  const seen: Shown[] = [];
  const ended = (async () => {
    for await (const one of following) seen.push(toNumber(one));
    return seen;
  })();
  return { seen, ended };
}

/** The same, and its words. */
function collectWords(following: AsyncIterable<FollowEvent>) {
  const [seen, said]: [Shown[], string[]] = [[], []];
  const collecting = (async () => {
    for await (const one of following) {
      seen.push(toNumber(one));
      if (one.type === 'entry') said.push((one.event as { text: string }).text);
    }
  })();
  return { seen, said, collecting };
}

const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, i) => first + i);

test('readers of one task share one watch and one reading, and each sees everything once', async () => {
  const { write, finish, follow, counted, world } = await setUp();
  const readers = upTo(100).map(() => collect(follow()));
  await flushMicrotasks();
  const reads = counted('read');
  for (let i = 0; i < 10; i++) {
    await write(3);
    await flushMicrotasks();
  }
  expect(counted('read') - reads).toBe(10);
  await finish();
  for (const { ended } of readers) expect(await ended).toEqual([...upTo(30), 'end']);
  expect(counted('watch')).toBe(1);
  expect(world.clock.pending).toBe(0);
});

test('readers come and go at any time, from any position, and none misses or doubles anything', async () => {
  const { write, finish, follow, world } = await setUp();
  const readers: { after: number; ended: Promise<unknown> }[] = [];
  for (let i = 0; i < 40; i++) {
    const after = Math.floor(world.random() * (i * 2 + 1));
    readers.push({ after, ended: collect(follow({ after })).ended });
    const leaver = follow({ after });
    const waits = leaver.next();
    if (i % 3 === 0) await flushMicrotasks();
    await write(2);
    if (i % 2 === 0) await flushMicrotasks();
    await leaver.return!();
    await waits;
  }
  await finish();
  for (const { after, ended } of readers) expect(await ended).toEqual([...upTo(80, after + 1), 'end']);
  expect(world.clock.pending).toBe(0);
});

test('a reader that does not read holds no other, keeps one page at most, and misses nothing', async () => {
  const { write, finish, follow, counted } = await setUp();
  const slow = follow();
  const first = slow.next();
  const keen = collect(follow());
  await flushMicrotasks();
  for (let i = 0; i < 30; i++) {
    await write(100);
    await flushMicrotasks();
  }
  expect(keen.seen).toEqual(upTo(3_000));
  const reads = counted('read');
  expect(toNumber((await first).value)).toBe(1);
  await finish();
  expect(await collect(slow).ended).toEqual([...upTo(3_000, 2), 'end']);
  // It read the missed entries itself, a page at a time.
  expect(counted('read') - reads).toBeLessThan(6);
  expect(await keen.ended).toHaveLength(3_001);
});

test('pages of the journal are not read while no reader keeps up', async () => {
  let entries = 0;
  const { write, finish, follow } = await setUp(async (name, call) => {
    const answer = await call();
    if (name === 'read') entries += (answer as unknown[]).length;
    return answer;
  });
  const slow = follow();
  const first = slow.next();
  await flushMicrotasks();
  const writeSome = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) {
      await write(500);
      await flushMicrotasks();
    }
  };
  await writeSome();
  const before = entries;
  await writeSome();
  // Only the last one, to know where its worker is.
  expect(entries - before).toBe(5);
  expect(toNumber((await first).value)).toBe(1);
  await finish();
  expect(await collect(slow).ended).toEqual([...upTo(5_000, 2), 'end']);
});

test('a lost hint is compensated in bounded time, and an idle task is rarely polled', async () => {
  const deaf: Around = (name, call) =>
    name === 'watch' ? Promise.resolve({ [Symbol.asyncDispose]: () => Promise.resolve() }) : call();
  const { write, finish, follow, counted, world } = await setUp(deaf);
  const { seen, ended } = collect(follow());
  await world.clock.advance(120_000);
  expect(counted('get')).toBeLessThan(22);
  for (let last = 1; last <= 5; last++) {
    await write();
    await world.clock.advance(HEALED_MS);
    expect(seen).toEqual(upTo(last));
    await world.clock.advance(60_000);
  }
  await finish();
  await world.clock.advance(HEALED_MS);
  expect(await ended).toEqual([...upTo(5), 'end']);
});

test('a reader that joins immediately gets entries without a hint', async () => {
  const deaf: Around = (name, call) =>
    name === 'watch' ? Promise.resolve({ [Symbol.asyncDispose]: () => Promise.resolve() }) : call();
  const { write, follow } = await setUp(deaf);
  const early = collect(follow());
  await flushMicrotasks();
  await write(2);
  const late = follow();
  expect(toNumber((await late.next()).value)).toBe(1);
  await flushMicrotasks();
  expect(early.seen).toEqual([1, 2]);
});

test('a position beyond the end of the journal concerns only who named it', async () => {
  const { write, finish, follow } = await setUp();
  const lost = collect(follow({ after: Number.MAX_SAFE_INTEGER }));
  const ahead = collect(follow({ after: 3 }));
  const whole = collect(follow());
  await flushMicrotasks();
  for (let i = 0; i < 5; i++) await write();
  await finish();
  expect(await whole.ended).toEqual([...upTo(5), 'end']);
  expect(await ahead.ended).toEqual([4, 5, 'end']);
  expect(await lost.ended).toEqual(['end']);
});

test('removed entries leave a gap, also at the end, and readers do not wait for them', async () => {
  const { memory, ref, finish, follow, write } = await setUp();
  const slow = follow();
  const first = slow.next();
  const keen = collect(follow());
  await flushMicrotasks();
  await write(3);
  await first;
  const by = { id: ref.id, epoch: 1, session: 'session of w', claim: 'claim of w' };
  await memory.append(by, { after: 3, events: [], replaces: [2, 3] });
  await finish();
  expect(await keen.ended).toEqual([1, 2, 3, 'end']);
  const late = await collect(follow()).ended;
  expect(late).toEqual([1, 'end']);
});

test('an outage halfway is reported to all, and all wait it out', async () => {
  let isOut = false;
  const { write, finish, follow, world } = await setUp((_name, call) =>
    isOut ? Promise.reject(new StoreBusyError('out')) : call(),
  );
  const told = [0, 0];
  const readers = told.map((_, index) => collect(follow({ onStoreError: () => told[index]!++ })));
  await write();
  await flushMicrotasks();
  isOut = true;
  await write(2);
  await world.clock.advance(20_000);
  const joined = collect(follow());
  await world.clock.advance(1_000);
  isOut = false;
  await write();
  await finish();
  await world.clock.advance(HEALED_MS);
  for (const { ended } of [...readers, joined]) expect(await ended).toEqual([...upTo(4), 'end']);
  for (const times of told) expect(times).toBeGreaterThan(5);
  expect(world.clock.pending).toBe(0);
});

test('a listener for errors that throws ends its own reader only', async () => {
  let isOut = false;
  const { write, finish, follow, world } = await setUp((_name, call) =>
    isOut ? Promise.reject(new StoreBusyError('out')) : call(),
  );
  const onStoreError = () => {
    throw new Error('mine');
  };
  const one = collect(follow({ onStoreError })).ended.catch((error: unknown) => error);
  const other = collect(follow());
  await flushMicrotasks();
  isOut = true;
  await write();
  await world.clock.advance(1_000);
  isOut = false;
  await world.clock.advance(HEALED_MS);
  expect(await one).toMatchObject({ message: 'mine' });
  await finish();
  expect(await other.ended).toEqual([1, 'end']);
});

test('the last reader leaves no watch, no timer and no request behind', async () => {
  let watching = 0;
  const { write, follow, asked, world } = await setUp(async (name, call) => {
    if (name !== 'watch') return call();
    const inner = (await call()) as AsyncDisposable;
    watching++;
    return {
      async [Symbol.asyncDispose]() {
        watching--;
        await inner[Symbol.asyncDispose]();
      },
    };
  });
  const controllers = upTo(3).map(() => new AbortController());
  const readers = controllers.map(({ signal }) => collect(follow({ signal })));
  await flushMicrotasks();
  expect([watching, world.clock.pending]).toEqual([1, 1]);
  for (const controller of controllers) {
    expect(watching).toBe(1);
    controller.abort();
    controller.abort();
    await flushMicrotasks();
  }
  await Promise.all(readers.map(({ ended }) => ended));
  expect([watching, world.clock.pending]).toEqual([0, 0]);
  const before = asked.length;
  await write();
  await world.clock.advance(60_000);
  expect(asked.length).toBe(before);
  // The next reader starts from the beginning.
  const next = follow();
  expect(toNumber((await next.next()).value)).toBe(1);
  await next.return!();
  await next.return!();
  expect([watching, world.clock.pending]).toEqual([0, 0]);
});

test('a reader that is cancelled before it starts sends no request', async () => {
  const { follow, asked, world } = await setUp();
  expect(await collect(follow({ signal: AbortSignal.abort() })).ended).toEqual([]);
  const never = follow();
  await never.return!();
  expect(await never.next()).toEqual({ done: true, value: undefined });
  expect([asked, world.clock.pending]).toEqual([[], 0]);
});

test('a watch that opens after the last reader has left is closed', async () => {
  const opening = Promise.withResolvers<void>();
  let left = 0;
  const { follow, world } = await setUp(async (name, call) => {
    if (name !== 'watch') return call();
    await opening.promise;
    return { [Symbol.asyncDispose]: () => Promise.resolve(void left++) };
  });
  const controller = new AbortController();
  const { ended } = collect(follow({ signal: controller.signal }));
  await flushMicrotasks();
  controller.abort();
  expect(await ended).toEqual([]);
  expect(left).toBe(0);
  opening.resolve();
  await flushMicrotasks();
  expect([left, world.clock.pending]).toEqual([1, 0]);
});

test('a reader for another tenant shares nothing, and gets that the task does not exist', async () => {
  const { store, ref, world, follow, write } = await setUp();
  const own = collect(follow());
  await flushMicrotasks();
  const other = collect(followTask(store, { tenant: 'other', id: ref.id }, { world }));
  await expect(other.ended).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
  await write();
  await flushMicrotasks();
  expect(own.seen).toEqual([1]);
});

test('a worker knows that its task is followed, as long as it is', async () => {
  const { memory, ref, by, follow } = await setUp();
  const hints: Hint[] = [];
  await memory.watch({ worker: 'w' }, (hint) => hints.push(hint));
  const findReaders = async () => (await memory.append(by, { after: 0, events: [] })).readers;
  expect(await findReaders()).toEqual([]);
  const controller = new AbortController();
  const { ended } = collect(follow({ signal: controller.signal }));
  await flushMicrotasks();
  const reader = 'memory';
  expect(hints).toEqual([{ type: 'watched', ...ref, worker: 'w', reader }]);
  expect(await findReaders()).toEqual([reader]);
  controller.abort();
  await ended;
  expect(await findReaders()).toEqual([]);
});

test('what is written while the watch opens is seen without a poll', async () => {
  const opened = Promise.withResolvers<() => Promise<void>>();
  const { write, follow } = await setUp(async (name, call) => {
    if (name === 'watch') await (await opened.promise)();
    // Its hint finds nobody.
    if (name === 'watch') await flushMicrotasks();
    return call();
  });
  const { seen } = collect(follow());
  await flushMicrotasks();
  opened.resolve(write);
  for (let i = 0; i < 3; i++) await flushMicrotasks();
  expect(seen).toEqual([1]);
});

/** Words that the worker shows. */
const toFrame = (claim: { epoch: number; claim: string }, said: string): Frame => {
  const { epoch } = claim;
  const events = [{ event: { type: 'text', text: said }, said: said.length }];
  const words = { kept: 0, position: 0, from: 0, to: said.length, at: 0, events };
  return { epoch, claimHash: hashClaim(claim.claim), ...words };
};

test('words that come while a reader reads wait for its answer', async () => {
  let waits: Promise<void> | undefined;
  const { memory, ref, by, follow } = await setUp(async (name, call) => {
    if (name === 'get') await waits;
    return call();
  });
  const { seen } = collect(follow());
  await flushMicrotasks();
  const reading = Promise.withResolvers<void>();
  waits = reading.promise;
  await memory.send(ref, { type: 'cancel-call', callId: 'c' });
  const late = collect(follow());
  await flushMicrotasks();
  memory.show({ readers: () => ['memory'], next: () => ({ type: 'frame', ...ref, frame: toFrame(by, 'hello') }) });
  await flushMicrotasks();
  expect(seen).toEqual([]);
  reading.resolve();
  await flushMicrotasks();
  expect([seen, late.seen]).toEqual([[0], [0]]);
});

test('words that are ahead of what they continue are shown after it, without another read', async () => {
  const { memory, ref, by, follow, counted } = await setUp();
  const { seen, said } = collectWords(follow());
  await flushMicrotasks();
  const reads = counted('read');
  const send = (words: Partial<Frame>): void => {
    memory.show({
      readers: () => ['memory'],
      next: () => ({ type: 'frame', ...ref, frame: { ...toFrame(by, ''), ...words } }),
    });
  };
  const word = (text: string, from: number): Partial<Frame> => {
    const to = from + text.length;
    return { from, to, events: [{ event: { type: 'text', text }, said: to }] };
  };
  for (const late of [word('two ', 4), word('three ', 8), word('one ', 0)]) {
    send(late);
    await flushMicrotasks();
  }
  expect(said).toEqual(['one ', 'two ', 'three ']);
  expect(counted('read')).toBe(reads);
  // What came before the journal is known to have the rest waits for it, and not for the next write.
  send(word('five', 19));
  await flushMicrotasks();
  await memory.append(by, { after: 0, events: [{ type: 'text', text: 'one two three four ' }], said: [19] });
  send({ kept: 19, position: 1, from: 19, to: 19, events: [] });
  await flushMicrotasks();
  expect(said).toEqual(['one ', 'two ', 'three ', 'four ', 'five']);
  expect(counted('read')).toBe(reads + 1);
  expect(seen).not.toContain('taken-back');
});

test('what a lost worker wrote while its reader read is not taken back', async () => {
  let onRead = async (): Promise<void> => {};
  const { memory, ref, by, follow } = await setUp(async (name, call) => {
    const answer = await call();
    if (name === 'read') await onRead();
    return answer;
  });
  const { seen, said } = collectWords(follow());
  await flushMicrotasks();
  memory.show({ readers: () => ['memory'], next: () => ({ type: 'frame', ...ref, frame: toFrame(by, 'hello') }) });
  await flushMicrotasks();
  onRead = async () => {
    onRead = async () => {};
    await memory.append(by, { after: 1, events: [{ type: 'text', text: 'lo' }], said: [5] });
    await memory.release(by);
    await claimFor(memory, ref.id, { worker: 'v' });
  };
  await memory.append(by, { after: 0, events: [{ type: 'text', text: 'hel' }], said: [3] });
  await memory.send(ref, { type: 'cancel-call', callId: 'c' });
  memory.show({
    readers: () => ['memory'],
    next: () => ({ type: 'frame', ...ref, frame: { ...toFrame(by, ''), kept: 6, position: 2, from: 6, to: 6 } }),
  });
  for (let i = 0; i < 5; i++) await flushMicrotasks();
  expect([said, seen]).toEqual([['hello'], [0]]);
});

test('forged frames show nothing, and keep no real word from a reader', async () => {
  const { memory, ref, by, follow, counted } = await setUp();
  const { said } = collectWords(follow());
  await flushMicrotasks();
  const send = (frame: Frame): void =>
    memory.show({ readers: () => ['memory'], next: () => ({ type: 'frame', ...ref, frame }) });
  const real = toFrame(by, 'real');
  const reads = counted('get');
  const forged: Partial<Frame>[] = [
    { claimHash: 'forged' },
    { epoch: by.epoch - 1 },
    { epoch: by.epoch + 1, claimHash: 'forged' },
    { kept: 1_000_000, position: 1_000 },
    { from: 1_000_000, to: 2_000_000 },
  ];
  for (const one of forged) {
    send({ ...real, events: [{ event: { type: 'text', text: 'forged' }, said: 6 }], ...one });
    for (let i = 0; i < 3; i++) await flushMicrotasks();
  }
  expect(said).toEqual([]);
  // One look for each that claims to know more than the reader.
  expect(counted('get') - reads).toBe(2);
  send(real);
  await flushMicrotasks();
  expect(said).toEqual(['real']);
});

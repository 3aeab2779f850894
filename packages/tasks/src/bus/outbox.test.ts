import { expect, test, vi } from 'vitest';
import type { Hint } from '../store.ts';
import { ChangeNotifier } from './notifier.ts';
import { decodeHints, Outbox } from './outbox.ts';
import { createProcessBus } from './process-bus.ts';

const hint = (id: string): Hint => ({ type: 'status', id, tenant: 'acme' });

/** A bus that keeps what it is asked to send. */
function setUp() {
  const bus = createProcessBus();
  const sent: [inbox: string, hints: readonly Hint[]][] = [];
  return {
    sent,
    bus: { ...bus, send: (to: string, message: Uint8Array) => sent.push([to, decodeHints(message)]) },
  };
}

test('the first hints leave immediately, those of the next 20 ms together, one message for each process', async () => {
  const { bus, sent } = setUp();
  const outbox = new Outbox(bus);
  outbox.add('a', hint('1'));
  outbox.add('a', hint('2'));
  expect(sent).toEqual([]);
  await Promise.resolve();
  expect(sent.splice(0)).toEqual([['a', [hint('1'), hint('2')]]]);
  for (const id of ['3', '4']) for (const inbox of ['a', 'b']) outbox.add(inbox, hint(id));
  await Promise.resolve();
  expect(sent).toEqual([]);
  await expect.poll(() => sent.length).toBeGreaterThan(0);
  expect(sent.splice(0)).toEqual(['a', 'b'].map((inbox) => [inbox, [hint('3'), hint('4')]]));
  outbox.add('a', hint('5'));
  outbox[Symbol.dispose]();
  expect(sent).toEqual([['a', [hint('5')]]]);
});

test('a process for which too many hints wait looks at everything instead', async () => {
  const { bus, sent } = setUp();
  using outbox = new Outbox(bus);
  for (let i = 0; i <= 5_000; i++) outbox.add('a', hint(`${i}`));
  await Promise.resolve();
  expect(sent).toEqual([['a', [{ type: 'resync' }]]]);
  expect(outbox).toBeDefined();
});

test('a burst of hints arrives in several messages, and one that is too large for the bus as a look at everything', async () => {
  const { bus, sent } = setUp();
  using outbox = new Outbox(bus);
  for (let i = 0; i < 1_001; i++) outbox.add('a', hint(i < 1_000 ? `${i}` : 'x'.repeat(1_000_000)));
  await Promise.resolve();
  expect(sent.map(([, hints]) => hints.length)).toEqual([500, 500, 1]);
  expect(sent.at(-1)).toEqual(['a', [{ type: 'resync' }]]);
  expect(outbox).toBeDefined();
});

test('a process that lost a message looks at everything as soon as the bus has room', async () => {
  const { bus, sent } = setUp();
  let isFull = true;
  using outbox = new Outbox({ ...bus, send: (to, message) => !isFull && bus.send(to, message) > 0 });
  outbox.add('a', hint('1'));
  await Promise.resolve();
  outbox.add('b', hint('2'));
  isFull = false;
  await expect.poll(() => sent).toHaveLength(2);
  expect(sent).toEqual([
    ['a', [{ type: 'resync' }]],
    ['b', [hint('2')]],
  ]);
  expect(outbox).toBeDefined();
});

test.each(['', 'null', '{}', '[null, 1, {}, "x"]', '[[', '\0'])('the message %j is ignored', (text) => {
  expect(decodeHints(Buffer.from(text))).toEqual([]);
});

/** A store that only keeps interests, and two processes of it. */
function createInterests() {
  const inboxes = new Map<string, Set<string>>();
  return {
    inboxes,
    express(inbox: string, names: readonly string[]) {
      const isKnown = inboxes.has(inbox);
      inboxes.set(inbox, new Set([...(inboxes.get(inbox) ?? []), ...names]));
      return Promise.resolve({ isKnown, inboxes: inboxes.size, workers: [] });
    },
    withdraw(inbox: string, names: readonly string[]) {
      for (const name of names) inboxes.get(inbox)?.delete(name);
      return Promise.resolve();
    },
  };
}

test('what is watched is in the store while it is watched, and a lost inbox is written again, which is a gap', async () => {
  const interests = createInterests();
  await using notifier = new ChangeNotifier({ bus: createProcessBus(), kind: 'process', interests });
  const heard: Hint[] = [];
  const one = await notifier.watch({ id: 'x' }, (given) => heard.push(given));
  const again = await notifier.watch({ id: 'x' }, () => {});
  await notifier.watch({ tenant: 'acme', conversation: 'c' }, () => {});
  await notifier.watch({ worker: 'w' }, () => {});
  expect([...interests.inboxes.get(notifier.inbox)!]).toEqual(['i:x', 'c:acme/c', 'w:w']);
  await one[Symbol.asyncDispose]();
  await one[Symbol.asyncDispose]();
  expect(interests.inboxes.get(notifier.inbox)).toContain('i:x');
  await again[Symbol.asyncDispose]();
  expect(interests.inboxes.get(notifier.inbox)).not.toContain('i:x');
  await notifier.watch({}, (given) => heard.push(given));
  interests.inboxes.clear();
  expect(heard).toEqual([]);
  await notifier.watch({ tenant: 'other' }, () => {});
  expect([...interests.inboxes.get(notifier.inbox)!].toSorted()).toEqual(['*', 'c:acme/c', 't:other', 'w:w']);
  expect(heard).toEqual([{ type: 'resync' }]);
});

test('a flood of interests is written in parts of at most 1,000, one at a time, and none stays', async () => {
  const interests = createInterests();
  const sizes: number[] = [];
  let open = 0;
  const one = async <T>(names: readonly string[], write: () => Promise<T>): Promise<T> => {
    sizes.push(names.length);
    expect(++open).toBe(1);
    const answer = await write();
    open--;
    return answer;
  };
  await using notifier = new ChangeNotifier({
    bus: createProcessBus(),
    kind: 'process',
    interests: {
      express: (inbox, names) => one(names, () => interests.express(inbox, names)),
      withdraw: (inbox, names) => one(names, () => interests.withdraw(inbox, names)),
    },
  });
  const ids = Array.from({ length: 4_500 }, (_, i) => `${i}`);
  const watches = await Promise.all(ids.map((id) => notifier.watch({ id }, () => {})));
  expect(interests.inboxes.get(notifier.inbox)!.size).toBe(4_500);
  expect(sizes.length).toBeLessThan(10);
  await Promise.all(watches.map((watch) => watch[Symbol.asyncDispose]()));
  expect(interests.inboxes.get(notifier.inbox)!.size).toBe(0);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
});

test('a watch begins while the bus is away, and its return is a gap', async () => {
  const listening = Promise.withResolvers<Disposable>();
  const bus = { ...createProcessBus(), receive: () => listening.promise };
  await using notifier = new ChangeNotifier({ bus, kind: 'process', interests: createInterests() });
  const heard: Hint[] = [];
  await notifier.watch({}, (given) => heard.push(given));
  expect(heard).toEqual([]);
  listening.resolve({ [Symbol.dispose]: () => {} });
  await expect.poll(() => heard).toEqual([{ type: 'resync' }]);
});

test('a process of the store that uses another bus causes one warning', async () => {
  const warnings: string[] = [];
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation((text) => void warnings.push(String(text)));
  await using notifier = new ChangeNotifier({ bus: createProcessBus(), kind: 'redis', interests: createInterests() });
  for (const inbox of ['postgres:a', 'postgres:b']) notifier.notify(inbox, hint('1'));
  warn.mockRestore();
  expect(warnings).toEqual([expect.stringMatching(/bus 'postgres', this one 'redis'.*same bus everywhere/)]);
});

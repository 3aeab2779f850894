import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { alterStore } from '../../../../../test/tasks/altered-store.ts';
import { claimFor } from '../../../../../test/tasks/claimed.ts';
import type { Hint } from '../../bus/hint.ts';
import { WorkerContext } from '../../delivery/worker-context.ts';
import { createMemoryStore } from '../../ledger/memory.ts';
import { Journal } from './journal.ts';

async function setUp() {
  const world = createVirtualWorld();
  const memory = createMemoryStore({ world });
  const receipt = await memory.create({ tenant: 'acme', agent: 'a', input: 'x' });
  if (receipt.result !== 'created') throw new Error(receipt.result);
  const { id, tenant } = receipt.task;
  const claim = await claimFor(memory, id, { worker: 'w' });
  const answers: (() => void)[] = [];
  let isHeld = false;
  const store = alterStore(memory, async (name, call) => {
    const answer = await call();
    if (name === 'append' && isHeld) await new Promise<void>((resolve) => answers.push(resolve));
    return answer;
  });
  const journal = new Journal({
    context: new WorkerContext({ store, world }),
    claim,
    tenant,
    readers: [],
    position: 0,
    bytes: 0,
    activity: () => undefined,
    onWrite: () => undefined,
    onOrders: () => {},
    onDisconnect: () => {},
    onFull: () => {},
    onRefused: () => {},
  });
  const seen: string[] = [];
  const note = (hint: Hint): void => {
    if (hint.type !== 'frame') return;
    for (const { event } of hint.frame.events) seen.push((event as { text: string }).text);
  };
  const ref = { tenant, id };
  const read = async () => JSON.stringify((await memory.read(ref)).map(({ event }) => event));
  const say = (text: string): void => journal.add({ type: 'text', text });
  return { world, memory, journal, ref, seen, note, read, say, answers, hold: (now: boolean) => (isHeld = now) };
}

test('what was said before somebody reads is written immediately, and what follows is shown', async () => {
  const { memory, journal, ref, seen, note, read, say } = await setUp();
  say('before ');
  await memory.watch({ ...ref, words: true }, note);
  journal.watch('memory');
  await flushMicrotasks();
  expect(await read()).toContain('before');
  say('after');
  await flushMicrotasks();
  expect(seen).toEqual(['after']);
});

test('a reader that comes while an append is in progress is kept, though the answer does not know it', async () => {
  const { memory, journal, ref, seen, note, say, answers, hold } = await setUp();
  hold(true);
  say('one ');
  journal.scheduleFlush();
  await flushMicrotasks();
  hold(false);
  await memory.watch({ ...ref, words: true }, note);
  journal.watch('memory');
  answers[0]!();
  await flushMicrotasks();
  say('two');
  await flushMicrotasks();
  expect(seen).toEqual(['two']);
});

test('a reader that came while the claim was given is known 200 ms after the first word, though no hint told of it', async () => {
  const { world, memory, ref, seen, note, say } = await setUp();
  await memory.watch({ ...ref, words: true }, note);
  say('one ');
  await world.clock.advance(199);
  expect(await memory.read(ref)).toEqual([]);
  await world.clock.advance(1);
  expect(await memory.read(ref)).toHaveLength(1);
  say('two');
  await flushMicrotasks();
  expect(seen).toEqual(['two']);
});

test('what was said during the write whose answer named the first reader is written immediately', async () => {
  const { memory, journal, ref, seen, note, read, say, answers, hold } = await setUp();
  await memory.watch({ ...ref, words: true }, note);
  say('one ');
  hold(true);
  journal.scheduleFlush();
  await flushMicrotasks();
  say('two ');
  hold(false);
  answers[0]!();
  await flushMicrotasks();
  expect(await read()).toContain('two');
  say('three');
  await flushMicrotasks();
  expect(seen).toEqual(['three']);
});

test('a task that is read is written every 750 ms, one that is not every 5 s', async () => {
  const { world, memory, journal, ref, note, read, say } = await setUp();
  say('zero');
  await journal.flush();
  say('one');
  await world.clock.advance(4_999);
  expect(await read()).not.toContain('one');
  await world.clock.advance(1);
  expect(await read()).toContain('one');
  await memory.watch({ ...ref, words: true }, note);
  journal.watch('memory');
  say('two');
  await world.clock.advance(749);
  expect(await read()).not.toContain('two');
  await world.clock.advance(1);
  expect(await read()).toContain('two');
});

test('a turn end of 200 kB is in no frame, and words wait until it is written', async () => {
  const { memory, journal, ref, seen, note, read, say, answers, hold } = await setUp();
  await memory.watch({ ...ref, words: true }, note);
  journal.watch('memory');
  say('one ');
  await flushMicrotasks();
  hold(true);
  const text = `one ${'x'.repeat(200_000)}`;
  journal.add({ type: 'turn-end', message: { role: 'assistant', content: [{ type: 'text', text }] } });
  say('two');
  await flushMicrotasks();
  expect(seen).toEqual(['one ']);
  hold(false);
  answers[0]!();
  await flushMicrotasks();
  expect(await read()).toContain('turn-end');
  expect(await read()).not.toContain('"text":"one "');
  await flushMicrotasks();
  expect(seen).toEqual(['one ', 'two']);
});

import { expect, test } from 'vitest';
import type { Update } from '../updates.ts';
import { Outbox } from './outbox.ts';
import { Saver } from './saver.ts';

const text = (words: string, messageId = 'm1'): Update => ({ type: 'text', messageId, text: words });

test('updates are merged in order while one is being sent', async () => {
  const sent: Update[] = [];
  const first = Promise.withResolvers<void>();
  const outbox = new Outbox(async (update) => {
    sent.push(update);
    if (sent.length === 1) await first.promise;
  });
  outbox.push(text('a'));
  await Promise.resolve();
  await Promise.resolve();
  outbox.push(text('b'));
  outbox.push(text('c'));
  outbox.push({ type: 'call', callId: 'x', status: 'in_progress' });
  outbox.push({ type: 'call', callId: 'x', content: [{ type: 'content', content: '1' }] });
  outbox.push({ type: 'call', callId: 'x', content: [{ type: 'content', content: '2' }] });
  outbox.push({ type: 'call', callId: 'x', status: 'completed' });
  outbox.push(text('d', 'm2'));
  first.resolve();
  await outbox.close();
  expect(sent).toEqual([
    text('a'),
    text('bc'),
    { type: 'call', callId: 'x', status: 'in_progress', content: [{ type: 'content', content: '2' }] },
    { type: 'call', callId: 'x', status: 'completed' },
    text('d', 'm2'),
  ]);
});

test('many calls that print while the client does not read leave one update each, and their ends stay in order', async () => {
  const sent: Update[] = [];
  const first = Promise.withResolvers<void>();
  const outbox = new Outbox(async (update) => {
    sent.push(update);
    if (sent.length === 1) await first.promise;
  });
  outbox.push(text('a'));
  await Promise.resolve();
  await Promise.resolve();
  const printed = (callId: string, content: string): Update => ({
    type: 'call',
    callId,
    content: [{ type: 'content', content }],
  });
  for (let i = 0; i < 1_000; i++) outbox.push(printed(`c${i % 8}`, String(i)));
  outbox.push({ type: 'call', callId: 'c0', status: 'completed' });
  outbox.push(printed('c1', 'last'));
  for (let i = 0; i < 100; i++) outbox.push({ type: 'plan', entries: [] });
  first.resolve();
  await outbox.close();
  expect(sent).toEqual([
    text('a'),
    printed('c0', '992'),
    printed('c1', 'last'),
    ...[2, 3, 4, 5, 6, 7].map((i) => printed(`c${i}`, String(992 + i))),
    { type: 'call', callId: 'c0', status: 'completed' },
    { type: 'plan', entries: [] },
  ]);
});

test('an update that must be kept first is sent after that, and nothing overtakes it', async () => {
  const order: string[] = [];
  const outbox = new Outbox((update) => {
    order.push(update.type);
    return Promise.resolve();
  });
  outbox.push({ type: 'call', callId: 'x' }, () => {
    order.push('kept');
    return Promise.resolve();
  });
  outbox.push(text('a'));
  await outbox.drained();
  expect(order).toEqual(['kept', 'call', 'text']);
});

test('messages after the end are counted, not sent', async () => {
  const sent: Update[] = [];
  const outbox = new Outbox((update) => {
    sent.push(update);
    return Promise.resolve();
  });
  await outbox.close();
  outbox.push(text('late'));
  await outbox.drained();
  expect({ sent, late: outbox.late }).toEqual({ sent: [], late: 1 });
});

test('a saver saves the latest state once for all calls during a save', async () => {
  const writes: PromiseWithResolvers<void>[] = [];
  const saver = new Saver(() => {
    const write = Promise.withResolvers<void>();
    writes.push(write);
    return write.promise;
  });
  const [first, second, third] = [saver.save(), saver.save(), saver.save()];
  expect(writes).toHaveLength(1);
  writes[0]!.resolve();
  await first;
  await Promise.resolve();
  expect(writes).toHaveLength(2);
  writes[1]!.resolve();
  await Promise.all([second, third]);
  expect(writes).toHaveLength(2);
});

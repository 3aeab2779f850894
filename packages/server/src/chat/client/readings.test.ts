import type { UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { type Reading, ReplyReadings, watch } from './readings.ts';

const start: UIMessageChunk = { type: 'start', messageId: 'm' };
const call: UIMessageChunk = { type: 'tool-input-available', toolCallId: 'c1', toolName: 'locate', input: {} };
const output: UIMessageChunk = { type: 'tool-output-available', toolCallId: 'c1', output: 'Oslo' };
const finish: UIMessageChunk = { type: 'finish' };

/** The replies of a chat that a page reads, and those after whose end it reads the chat again. */
function open() {
  const again: Reading[] = [];
  const readings = new ReplyReadings((_, stale) => stale && again.push(stale));
  return {
    again,
    readings,
    /** Reads a stream to its end. */
    read: async (reading: Reading, ...chunks: readonly UIMessageChunk[]): Promise<void> => {
      const onEnd = (): void => readings.remove('c', reading);
      const stream = new ReadableStream<UIMessageChunk>({
        start(controller) {
          for (const chunk of chunks) controller.enqueue(chunk);
          controller.close();
        },
      });
      await stream.pipeThrough(watch(reading, { onChunk: () => {}, onEnd })).pipeTo(new WritableStream());
    },
  };
}

test('a reply that the page asked for and read alone says nothing about others', async () => {
  const { again, readings, read } = open();
  for (const runId of ['r1', 'r2']) await read(readings.add('c', { runId }), start, finish);
  expect(again).toEqual([]);
});

test('a page that reads a reply that it did not ask for may have missed an earlier end', async () => {
  const { again, readings, read } = open();
  const resumed = readings.add('c', {});
  await read(resumed, start, finish);
  expect(again).toEqual([resumed]);
  // Then it has read the chat.
  await read(readings.add('c', { runId: 'r2' }), start, finish);
  expect(again).toEqual([resumed]);
});

test('what another tab passes on may be older than what the page shows', async () => {
  const { again, readings, read } = open();
  const passed = readings.add('c', { isPassed: true });
  await read(passed, start, finish);
  expect(again).toEqual([passed]);
});

test('the end of each of several replies is read, until the page reads none', async () => {
  const { again, readings, read } = open();
  const [first, second] = [readings.add('c', { runId: 'r1' }), readings.add('c', { runId: 'r2' })];
  await read(second, start, finish);
  const third = readings.add('c', { runId: 'r3' });
  await read(first, start, finish);
  await read(third, start, finish);
  expect(again).toEqual([second, first, third]);
  await read(readings.add('c', { runId: 'r4' }), start, finish);
  expect(again).toHaveLength(3);
});

test('the end of a reply that the page has left is read with the end of the next one', async () => {
  const { again, readings, read } = open();
  readings.remove('c', readings.add('c', { runId: 'r1' }), true);
  const next = readings.add('c', { runId: 'r2' });
  await read(next, start, call, finish);
  expect(again).toEqual([next]);
  // One that has ended cannot be left.
  readings.remove('c', next, true);
  await read(readings.add('c', { runId: 'r3' }), start, finish);
  expect(again).toEqual([next]);
});

test('one that has not begun has changed nothing', async () => {
  const { again, readings, read } = open();
  await read(readings.add('c', {}));
  expect(again).toEqual([]);
});

test('one that ends with an open call says so, because the message of an agent still waits', async () => {
  const { again, readings, read } = open();
  await read(readings.add('c', {}), start, call, finish);
  await read(readings.add('c', {}), start, call, output, finish);
  expect(again.map((reading) => [...reading.open!])).toEqual([['c1'], []]);
});

test('other chats have their own replies', async () => {
  const { again, readings, read } = open();
  readings.add('other', { runId: 'r1' });
  await read(readings.add('c', { runId: 'r2' }), start, finish);
  expect(again).toEqual([]);
});

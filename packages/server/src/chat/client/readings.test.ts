import type { UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { ReplyReadings, watch } from './readings.ts';

const start: UIMessageChunk = { type: 'start', messageId: 'm' };

test('a reply has its name with its first chunk, and is over once', async () => {
  let changes = 0;
  const readings = new ReplyReadings(() => changes++);
  const reading = readings.add('c', {});
  readings.add('other', { runId: 'r1' });
  const onEnd = (): void => readings.remove('c', reading);
  const chunks = [start, { type: 'finish' }] as const;
  const stream = new ReadableStream<UIMessageChunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  await stream.pipeThrough(watch(reading, { onChunk: () => {}, onEnd })).pipeTo(new WritableStream());
  await Promise.all([reading.named.promise, reading.over.promise]);
  expect(reading.messageId).toBe('m');
  expect([readings.of('c').length, readings.of('other').length, changes]).toEqual([0, 1, 3]);
});

test('one that is left before it begins has no name, and keeps no stop waiting', async () => {
  const readings = new ReplyReadings(() => {});
  const reading = readings.add('c', {});
  for (let count = 0; count < 2; count++) readings.remove('c', reading);
  await Promise.all([reading.named.promise, reading.over.promise]);
  expect(reading.messageId).toBeUndefined();
});

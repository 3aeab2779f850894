import { createVirtualWorld } from '@whoa/core/testing';
import type { UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { ChunkWriter, type ReplyEvent } from './chunk-writer.ts';

const word = (delta: string): UIMessageChunk => ({ type: 'text-delta', id: '1', delta });

test('the first word after a pause is written immediately, and those that follow it together', async () => {
  const world = createVirtualWorld();
  const written: string[] = [];
  const journal = (event: unknown) => {
    const { chunks } = event as ReplyEvent;
    written.push(`${world.clock.now()} ${chunks.map((chunk) => ('delta' in chunk ? String(chunk.delta) : '')).join()}`);
    return Promise.resolve();
  };
  const writer = new ChunkWriter({ journal, clock: world.clock, past: [], usage: () => undefined });
  const from = world.clock.now();
  const at = (ms: number, words: string) => `${from + ms} ${words}`;
  writer.add(word('a'));
  await world.clock.advance(0);
  expect(written).toEqual([at(0, 'a')]);
  for (const delta of ['b', 'c', 'd']) {
    await world.clock.advance(10);
    writer.add(word(delta));
  }
  await world.clock.advance(400);
  writer.add(word('e'));
  await world.clock.advance(0);
  expect(written).toEqual([at(0, 'a'), at(50, 'bcd'), at(430, 'e')]);
  writer.add(word('f'));
  await writer.flush();
  expect(written.at(-1)).toBe(at(430, 'f'));
});

import { expect, test } from 'vitest';
import type { ModelPart } from '../reply/model.ts';
import type { ReplySource } from './message.ts';
import { ReplyBuilder } from './reply-builder.ts';

function built(parts: readonly ModelPart[], source?: ReplySource): ReplyBuilder {
  const builder = new ReplyBuilder(source);
  for (const part of parts) builder.add(part);
  return builder;
}

const FINISH: ModelPart = { type: 'finish', stopReason: 'length' };
const thought = (text: string): ModelPart => ({ type: 'thinking', text });
const said = (text: string): ModelPart => ({ type: 'text', text });
const CALL: ModelPart = { type: 'call-end', callId: 'c', tool: 't', input: 1 };
const message = { role: 'assistant', stopReason: 'stop' };

test('words and thoughts that follow each other are one part; signed ones stay apart', () => {
  const builder = built([
    thought('a'),
    thought('b'),
    { type: 'thinking-end', signature: 's' },
    thought('c'),
    { type: 'thinking-end' },
    { type: 'thinking-end', signature: 'alone' },
    said('d'),
    said('e'),
    { type: 'call-start', callId: 'c', tool: 't' },
    { type: 'call-arguments', callId: 'c', text: '1' },
    CALL,
    said('f'),
    { ...CALL, providerId: 'p' },
    FINISH,
  ]);
  expect(builder.finished()).toStrictEqual({
    role: 'assistant',
    stopReason: 'tool-use',
    content: [
      { type: 'thinking', text: 'ab', signature: 's' },
      { type: 'thinking', text: 'c' },
      { type: 'thinking', text: '', signature: 'alone' },
      { type: 'text', text: 'de' },
      { type: 'call', callId: 'c', tool: 't', input: 1 },
      { type: 'text', text: 'f' },
      { type: 'call', callId: 'c', providerId: 'p', tool: 't', input: 1 },
    ],
  });
});

test('a thought after words is another, and its signature is its own', () => {
  const { content } = built([
    thought('a'),
    said('b'),
    thought('c'),
    { type: 'thinking-end', signature: 's' },
  ]).finished();
  expect(content).toStrictEqual([
    { type: 'thinking', text: 'a' },
    { type: 'text', text: 'b' },
    { type: 'thinking', text: 'c', signature: 's' },
  ]);
  expect(built([thought('a'), said('b'), { type: 'thinking-end', signature: 's' }]).finished().content).toHaveLength(3);
});

test('a reply starts with its first part and is finished when the provider reports it', () => {
  const builder = built([]);
  expect([builder.hasStarted, builder.isFinished, builder.stopReason]).toEqual([false, false, undefined]);
  builder.add({ type: 'usage' });
  expect([builder.hasStarted, builder.isFinished]).toEqual([true, false]);
  builder.add(FINISH);
  expect([builder.isFinished, builder.stopReason]).toEqual([true, 'length']);
  expect(builder.finished()).toMatchObject({ stopReason: 'length' });
});

test('a reply that was cut off requests nothing, and may have cost more than was reported', () => {
  expect(built([said('a'), CALL]).cut('aborted')).toStrictEqual({
    role: 'assistant',
    stopReason: 'aborted',
    content: [{ type: 'text', text: 'a' }],
    usage: { inputTokens: 0, outputTokens: 0, isComplete: false },
  });
});

test('counts are put together as they come, and invalid counts are ignored', () => {
  const counts: ModelPart[] = [
    { type: 'usage', inputTokens: 5 },
    { type: 'usage', outputTokens: 1 },
    { type: 'usage', inputTokens: Number.NaN, outputTokens: -1 },
    { type: 'usage', inputTokens: '7' as never, outputTokens: Infinity },
    { type: 'usage', outputTokens: 2 },
  ];
  expect(built(counts).finished().usage).toStrictEqual({ inputTokens: 5, outputTokens: 2, isComplete: true });
  const zero: ModelPart = { type: 'usage', inputTokens: 0 };
  expect(built([...counts, zero]).finished().usage).toMatchObject({ inputTokens: 0 });
});

test('a reply reports its provider and model if they are known', () => {
  expect(built([]).finished()).toStrictEqual({ ...message, content: [] });
  const source = { provider: 'p', api: 'a', model: 'm' };
  expect(built([], source).finished()).toStrictEqual({ ...message, content: [], ...source });
  expect(built([], { provider: '' }).finished()).toStrictEqual({ ...message, content: [] });
});

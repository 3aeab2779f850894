import type { UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { ChangedReplyError, ShownChunks } from './shown-chunks.ts';

const start: UIMessageChunk = { type: 'start', messageId: 'm' };
const step: UIMessageChunk = { type: 'start-step' };
const begin = (id: string): UIMessageChunk => ({ type: 'text-start', id });
const text = (id: string, delta: string): UIMessageChunk => ({ type: 'text-delta', id, delta });
const end = (id: string): UIMessageChunk => ({ type: 'text-end', id });
const asked: UIMessageChunk = { type: 'tool-input-available', toolCallId: 'c1', toolName: 'work', input: {} };
const result = (output: string, preliminary?: true): UIMessageChunk => ({
  type: 'tool-output-available',
  toolCallId: 'c1',
  output,
  ...(preliminary && { preliminary }),
});

/** Reads a stream that is cut, then the whole stream again. Returns the chunks that a page gets of each. */
function readTwice(cut: readonly UIMessageChunk[], whole: readonly UIMessageChunk[]) {
  const shown = new ShownChunks();
  const first = cut.flatMap((chunk) => [...shown.next(chunk)]);
  shown.restart();
  return { first, second: whole.flatMap((chunk) => [...shown.next(chunk)]) };
}

const WHOLE = [start, step, begin('1'), text('1', 'Hello '), text('1', 'you'), end('1'), asked, result('ok')];

test.for(WHOLE.map((_, index) => index))('a replay after %i chunks passes only what is new', (index) => {
  const cut = WHOLE.slice(0, index);
  const { first, second } = readTwice(cut, WHOLE);
  expect(first).toEqual(cut);
  expect(second).toEqual(WHOLE.slice(index));
});

test.for([
  [['Hel'], ['Hello ', 'you']],
  [
    ['Hello ', 'y'],
    ['H', 'ello you'],
  ],
  [['Hello you'], ['Hello', ' ', 'you']],
])('replayed text may be split and joined anywhere: %j, then %j', ([pieces, again]) => {
  const { second } = readTwice(
    [start, step, begin('1'), ...pieces!.map((piece) => text('1', piece))],
    [start, step, begin('1'), ...again!.map((piece) => text('1', piece)), end('1')],
  );
  const words = second.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('');
  expect(pieces!.join('') + words).toBe('Hello you');
  expect(second.at(-1)).toEqual(end('1'));
});

test('a connection can be lost any number of times', () => {
  const shown = new ShownChunks();
  const got: UIMessageChunk[] = [];
  for (let index = 1; index <= WHOLE.length; index++) {
    shown.restart();
    for (const chunk of WHOLE.slice(0, index)) got.push(...shown.next(chunk));
  }
  expect(got).toEqual(WHOLE);
});

test('preliminary results that a replay leaves out, or adds, change nothing', () => {
  const before = [start, step, asked];
  expect(readTwice([...before, result('1 %', true), result('2 %', true)], [...before, result('ok')]).second).toEqual([
    result('ok'),
  ]);
  expect(readTwice([...before, result('ok')], [...before, result('1 %', true), result('ok')]).second).toEqual([]);
});

test('a step that another worker repeats replaces its shown parts', () => {
  const other = [start, step, begin('1'), text('1', 'Help'), end('1')];
  const { second } = readTwice([start, step, begin('1'), text('1', 'Hello')], other);
  expect(second).toEqual([{ type: 'reset-step' }, begin('1'), text('1', 'Help'), end('1')]);
  const longer = readTwice(
    [...other, step, begin('2'), text('2', 'On')],
    [...other, step, begin('2'), text('2', 'No')],
  );
  expect(longer.second).toEqual([{ type: 'reset-step' }, begin('2'), text('2', 'No')]);
});

test.for([
  ['another message', [{ type: 'start', messageId: 'other' }]],
  ['another first step', [start, step, begin('9'), text('9', 'Bye')]],
] as [string, UIMessageChunk[]][])('%s cannot be repaired here', ([, other]) => {
  const cut = [...WHOLE, { type: 'finish-step' } as const, step, begin('2'), text('2', 'On')];
  expect(() => readTwice(cut, other)).toThrow(ChangedReplyError);
});

test('transient chunks always pass and are not waited on', () => {
  const note: UIMessageChunk = { type: 'data-note', data: 1, transient: true };
  expect(readTwice([start, note, step], [start, step, note, begin('1')]).second).toEqual([note, begin('1')]);
});

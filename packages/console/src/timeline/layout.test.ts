import type { JournalEvent } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { RunModel } from '../model/run-model.ts';
import { layOut } from './layout.ts';

const START = 1_000_000;

interface Event {
  readonly type: string;
  readonly at: number;
  readonly [field: string]: unknown;
}

function read(...events: readonly Event[]): RunModel {
  const run = new RunModel();
  for (const event of events) {
    const at = START + event.at;
    run.apply({ at, event: { ...event, at } as unknown as JournalEvent });
  }
  return run;
}

const start = (callId: string, tool: string, at: number): Event => ({
  type: 'call-start',
  callId,
  tool,
  input: { command: `${tool} it` },
  at,
});
const end = (callId: string, tool: string, state: string, at: number): Event => ({
  type: 'call-end',
  result: { callId, tool, state, content: '', isError: false, endedAt: START + at },
  at,
});
const turn = { type: 'turn-start', turn: 1, at: 0 };
const level = (name: string, at: number): Event => ({
  type: 'level-changed',
  level: name,
  reason: { kind: 'user', by: 'ann', at: START + at },
  at,
});
const context = { end: START + 10_000, isLive: false, width: 1_008 };

test('one lane for the model and one for each tool; times are to scale', () => {
  const run = read(turn, start('c1', 'bash', 1_000), end('c1', 'bash', 'finished', 3_000), start('c2', 'grep', 3_000));
  const { lanes, bars } = layOut(run, context);
  expect(lanes.map(({ name }) => name)).toEqual(['model', 'bash', 'grep']);
  const bash = bars.find(({ kind }) => kind === 'call');
  expect(bash).toMatchObject({ x: 104, width: 200 });
});

test('calls of one tool that overlap do not cover each other', () => {
  const run = read(turn, start('c1', 'bash', 0), start('c2', 'bash', 1_000));
  const [first, second] = layOut(run, context).bars.filter(({ kind }) => kind === 'call');
  expect(second!.y).toBeGreaterThan(first!.y + first!.height);
});

test('a stop is a line, its levels are bands, and interrupted calls have a cap', () => {
  const run = read(
    turn,
    start('c1', 'bash', 0),
    level('drain', 4_000),
    level('abort', 6_000),
    end('c1', 'bash', 'interrupted', 6_000),
  );
  const { cancel, bands, bars, story } = layOut(run, context);
  expect(cancel).toEqual({ x: 404, label: 'stop by ann' });
  expect(bands).toMatchObject([
    { level: 'drain', x: 404, width: 200, isAhead: false },
    { level: 'abort', x: 604, width: 400, isAhead: false },
  ]);
  expect(bars.some(({ kind }) => kind === 'cut')).toBe(true);
  expect(story).toBe('Cancelled 4.0 s after the start: drain 2.0 s and abort 4.0 s.');
});

test('levels that lie ahead are drawn beyond now', () => {
  const run = read(turn, start('c1', 'bash', 0), level('drain', 9_000));
  const ahead = { abortAt: START + 19_000, killAt: START + 21_000 };
  const { bands, now } = layOut(run, { ...context, isLive: true, ahead });
  expect(bands.map(({ level: name, isAhead }) => [name, isAhead])).toEqual([
    ['drain', false],
    ['abort', true],
    ['kill', true],
  ]);
  expect(now!.x).toBeLessThan(bands[1]!.x);
});

test('the drawing stays inside, no matter how long the run is and how many tools it has', () => {
  const events = Array.from({ length: 2_000 }, (_, i) => [
    start(`c${i}`, `tool-${i % 40}`, i * 10),
    end(`c${i}`, `tool-${i % 40}`, 'unknown', i * 10 + 9),
  ]);
  const layout = layOut(read(turn, ...events.flat()), { ...context, end: START + 20_000 });
  expect(layout.lanes.length).toBeLessThanOrEqual(16);
  for (const { x, y, width, height } of layout.bars) {
    expect(x).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThanOrEqual(layout.width + 1);
    expect(y + height).toBeLessThanOrEqual(layout.floor);
  }
});

test('an empty run and one without time can be drawn', () => {
  expect(layOut(new RunModel(), context).bars).toEqual([]);
  expect(layOut(read(turn), { ...context, end: START }).width).toBe(1_008);
});

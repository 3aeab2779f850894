import { expect, test } from 'vitest';
import { createVirtualWorld } from '../testing/virtual-world.ts';
import { RunGate } from './gate.ts';
import type { RunEvent, UnstampedEvent } from './report/events.ts';

const words = (text: string): UnstampedEvent => ({ type: 'text', text });
const runEnd = { type: 'run-end', outcome: {} } as UnstampedEvent;
const late = { type: 'undo-start', callId: 'c', tool: 't' } as const;

function setUp(onEvent: (event: RunEvent, gate: RunGate) => void = () => {}) {
  const { clock } = createVirtualWorld();
  const told: string[] = [];
  const gate: RunGate = new RunGate({
    runId: 'r',
    clock,
    emitToHooks: (event) => {
      told.push(event.type === 'text' ? event.text : event.type);
      onEvent(event, gate);
    },
  });
  const logged = async (): Promise<string[]> => {
    const types: string[] = [];
    for await (const event of gate.log) types.push(event.type);
    return types;
  };
  return { clock, gate, told, logged };
}

test('events are stamped with run and time, but for those that bring their own', () => {
  const { clock, gate } = setUp();
  const at = clock.now();
  expect(gate.stamp(words('x'))).toEqual({ type: 'text', text: 'x', runId: 'r', at });
  expect(gate.stamp({ ...words('x'), at: 5 } as never)).toMatchObject({ at: 5 });
  expect(gate.stamp({ ...words('x'), at: 'no' } as never)).toMatchObject({ at });
});

test('where the clock fails, the last known time is used', async () => {
  const { clock } = createVirtualWorld();
  let fails = false;
  const now = (): number => {
    if (fails) throw new Error('no time');
    return clock.now();
  };
  const gate = new RunGate({
    runId: 'r',
    clock: { now, setTimer: (...args) => clock.setTimer(...args) },
    emitToHooks: () => {},
  });
  const first = gate.now();
  await clock.advance(10);
  expect(gate.now()).toBe(first + 10);
  await clock.advance(10);
  fails = true;
  expect(gate.now()).toBe(first + 10);
});

test('an event caused by a hook comes after all listeners received the event that caused it', () => {
  const during: boolean[] = [];
  const { gate, told } = setUp((event, own) => {
    during.push(own.isNotifying);
    if (event.type !== 'text' || event.text !== 'one') return;
    own.emit(words('two'));
    told.push('one was told');
  });
  gate.emit(words('one'));
  expect(told).toEqual(['one', 'one was told', 'two']);
  expect([...during, gate.isNotifying]).toEqual([true, true, false]);
});

test('the text is that of the turn', () => {
  const { gate } = setUp();
  gate.emit(words('old'));
  gate.emit({ type: 'turn-start', turn: 2 });
  gate.emit(words('a'));
  gate.emit(words('b'));
  expect(gate.text).toBe('ab');
  gate.emit(runEnd);
  gate.emit(words('c'));
  expect(gate.text).toBe('ab');
});

test('only late events follow the end, and only hooks receive them', async () => {
  const { gate, told, logged } = setUp((event, own) => {
    if (event.type === 'run-end') own.emit(late);
  });
  gate.emit(words('x'));
  gate.emit(runEnd);
  expect(told).toEqual(['x', 'run-end']);
  gate.emit(words('after'));
  gate.emit(late);
  expect(told).toEqual(['x', 'run-end', 'undo-start']);
  expect(await logged()).toEqual(['text', 'run-end']);
});

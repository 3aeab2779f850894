import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PlanError, type PlannedCall, planWaves } from './waves.ts';

const ids = (plan: readonly (readonly PlannedCall[])[]) => plan.map((wave) => wave.map(({ id }) => id));

test('calls that need nothing share the first wave', () => {
  expect(ids(planWaves([{ id: 'a' }, { id: 'b' }]))).toEqual([['a', 'b']]);
  expect(planWaves([])).toEqual([]);
});

test('a call comes one wave after the last thing it needs, whatever the order given', () => {
  expect(
    ids(
      planWaves([
        { id: 'c', dependsOn: ['b'] },
        { id: 'a' },
        { id: 'b', dependsOn: ['a'] },
        { id: 'd', dependsOn: ['a'] },
      ]),
    ),
  ).toEqual([['a'], ['b', 'd'], ['c']]);
});

test('calls that share a key never share a wave', () => {
  expect(
    ids(
      planWaves([
        { id: 'a', exclusive: ['file'] },
        { id: 'b', exclusive: ['file', 'db'] },
        { id: 'c', exclusive: ['db'] },
        { id: 'd' },
      ]),
    ),
  ).toEqual([['a', 'c', 'd'], ['b']]);
});

test('cycles are rejected with the names', () => {
  const cycle = [
    { id: 'start', dependsOn: ['a'] },
    { id: 'a', dependsOn: ['b'] },
    { id: 'b', dependsOn: ['c'] },
    { id: 'c', dependsOn: ['a'] },
  ];
  expect(() => planWaves(cycle)).toThrow(new PlanError('Calls depend on each other: a → b → c → a'));
  expect(() => planWaves([{ id: 'me', dependsOn: ['me'] }])).toThrow('me → me');
});

test('unknown and repeated ids are rejected with the names', () => {
  expect(() => planWaves([{ id: 'a', dependsOn: ['ghost'] }])).toThrow(
    "Call 'a' depends on 'ghost', which is not among the calls",
  );
  expect(() => planWaves([{ id: 'a' }, { id: 'a' }])).toThrow("Two calls have the id 'a'");
});

test('a chain of 50,000 calls works', () => {
  const chain = Array.from({ length: 50_000 }, (_, i) => ({ id: `${i}`, dependsOn: i < 49_999 ? [`${i + 1}`] : [] }));
  expect(planWaves(chain)).toHaveLength(50_000);
});

test('any plan: everything once, needs before needers, keys apart', () => {
  const plan = fc.array(
    fc.record({
      needs: fc.array(fc.nat(20), { maxLength: 3 }),
      keys: fc.array(fc.constantFrom('x', 'y'), { maxLength: 2 }),
    }),
    {
      maxLength: 20,
    },
  );
  fc.assert(
    fc.property(plan, (shape) => {
      const calls = shape.map(({ needs, keys }, i) => ({
        id: `${i}`,
        dependsOn: needs.filter((need) => need < i).map(String),
        exclusive: keys,
      }));
      const planned = planWaves(calls);
      const at = new Map(planned.flatMap((wave, number) => wave.map(({ id }) => [id, number] as const)));
      expect(at.size).toBe(calls.length);
      for (const { id, dependsOn } of calls)
        for (const need of dependsOn) expect(at.get(need)).toBeLessThan(at.get(id)!);
      for (const wave of planned) {
        const keys = wave.flatMap(({ exclusive }) => [...new Set(exclusive)]);
        expect(new Set(keys).size).toBe(keys.length);
      }
    }),
  );
});

test('thousands of calls that share a key are placed in no time', () => {
  const calls = Array.from({ length: 50_000 }, (_, i) => ({ id: `${i}`, exclusive: i % 2 === 0 ? ['a'] : ['b', 'a'] }));
  // Looking at every wave for every call, this would not end in the time of a test.
  expect(planWaves(calls)).toHaveLength(50_000);
});

test('a key that is taken late leaves the waves before it free', () => {
  const plan = planWaves([
    { id: 'first' },
    { id: 'second', dependsOn: ['first'] },
    { id: 'late', dependsOn: ['second'], exclusive: ['k'] },
    { id: 'early', exclusive: ['k', 'm'] },
    { id: 'next', exclusive: ['m', 'k'] },
    { id: 'last', exclusive: ['k'] },
  ]);
  expect(plan.map((wave) => wave.map(({ id }) => id))).toEqual([
    ['first', 'early'],
    ['second', 'next'],
    ['late'],
    ['last'],
  ]);
});

test('a plan that cannot be made throws an error with a name and a code', () => {
  expect(new PlanError('x')).toMatchObject({ name: 'PlanError', code: 'INVALID_PLAN' });
});

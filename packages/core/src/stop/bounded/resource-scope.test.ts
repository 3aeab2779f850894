import { expect, test, vi } from 'vitest';
import { ResourceScope } from './resource-scope.ts';

function thing() {
  const dispose = vi.fn();
  return { [Symbol.dispose]: dispose, dispose };
}

test('things end with their owner, once, and what was ended before is not ended again', () => {
  const owned = new ResourceScope();
  const [kept, ended, late] = [thing(), thing(), thing()];
  owned.add(kept);
  owned.add(ended)[Symbol.dispose]();
  expect([kept, ended].map(({ dispose }) => dispose.mock.calls.length)).toEqual([0, 1]);
  owned[Symbol.dispose]();
  owned[Symbol.dispose]();
  expect([kept, ended].map(({ dispose }) => dispose.mock.calls.length)).toEqual([1, 1]);
  owned.add(late);
  expect(late.dispose).toHaveBeenCalledTimes(1);
});

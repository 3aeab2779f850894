// `WHOA_HISTORIES=50000 WHOA_SEED=1 npx vitest run --project unit test/spending` runs more.
import { expect, test, vi } from 'vitest';
import { Account } from '../../packages/core/src/run/spending/account.ts';
import { PaidRequest } from '../../packages/core/src/run/spending/requests.ts';
import { runSpendingHistory } from './history.ts';

const COUNT = Number(process.env['WHOA_HISTORIES'] ?? 150);
const SEED = Number(process.env['WHOA_SEED'] ?? 1);

function createRandom(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Returns the first faults of some histories. */
async function findFaults(count: number): Promise<{ readonly faults: readonly string[]; readonly requests: number }> {
  let requests = 0;
  for (let seed = SEED; seed < SEED + count; seed++) {
    const history = await runSpendingHistory(createRandom(seed));
    requests += history.requests;
    if (history.faults.length > 0) return { faults: [`seed ${seed}`, ...history.faults], requests };
  }
  return { faults: [], requests };
}

test('no limit is passed before a request, and every reported millionth is in each sum around it', {
  timeout: 3_600_000,
}, async () => {
  const { faults, requests } = await findFaults(COUNT);
  expect(faults).toEqual([]);
  expect(requests).toBeGreaterThan(COUNT);
});

type Method = (this: unknown, ...given: unknown[]) => unknown;

/** Replaces a method while some histories run. */
async function withBug(
  owner: { prototype: object },
  name: string,
  bug: (original: Method) => Method,
): Promise<readonly string[]> {
  const original = (owner.prototype as Record<string, Method>)[name]!;
  vi.spyOn(owner.prototype as Record<string, Method>, name).mockImplementation(bug(original));
  try {
    return (await findFaults(400)).faults;
  } finally {
    vi.restoreAllMocks();
  }
}

test.each<[string, { prototype: object }, string, (original: Method) => Method]>([
  ['what is spent is not compared with the limit', Account, 'isOver', () => () => false],
  ['what others have reserved is not counted', Account, 'isFull', () => () => false],
  ['a request reserves nothing', Account, 'reserve', () => () => undefined],
  [
    'a reservation is kept after its request',
    Account,
    'settle',
    (settle) =>
      function (_, usage, ids) {
        return settle.call(this, 0, usage, ids);
      },
  ],
  [
    'half of a reservation is kept',
    Account,
    'settle',
    (settle) =>
      function (amount, usage, ids) {
        return settle.call(this, Math.floor((amount as number) / 2), usage, ids);
      },
  ],
  [
    'what a request cost is not counted',
    Account,
    'settle',
    (settle) =>
      function (amount, _, ids) {
        return settle.call(this, amount, 'unsent', ids);
      },
  ],
  [
    'figures are lost',
    Account,
    'settle',
    (settle) =>
      function (amount, _, ids) {
        return settle.call(this, amount, undefined, ids);
      },
  ],
  [
    'cached tokens are not counted as such',
    Account,
    'settle',
    (settle) =>
      function (amount, usage, ids) {
        const plain = typeof usage === 'object' ? { ...usage, cachedInputTokens: 0 } : usage;
        return settle.call(this, amount, plain, ids);
      },
  ],
  [
    'a retry is not reserved',
    PaidRequest,
    'again',
    (again) => {
      const begun = new WeakSet<object>();
      return async function () {
        if (begun.has(this as object)) return;
        begun.add(this as object);
        await again.call(this);
      };
    },
  ],
  [
    'a request is settled twice',
    Account,
    'settle',
    (settle) =>
      function (...given) {
        settle.call(this, ...given);
        settle.call(this, ...given);
      },
  ],
  ['a request is never settled', PaidRequest, 'settle', () => () => undefined],
])('a planted bug is found: %s', async (_, owner, name, bug) => {
  expect(await withBug(owner, name, bug)).not.toEqual([]);
});

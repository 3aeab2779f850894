// The scenarios of docs/evidence/peers.md: ours passes them, and libraries that should fail them do.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Observation } from '../../peers/core/repeat.ts';

process.env['WHOA_PEERS_SLACK'] = '5';
const { repeat } = await import('../../peers/core/repeat.ts');
const { scenarios } = await import('../../peers/scenarios/all.ts');
const { peer: whoa } = await import('../../peers/adapters/whoa.ts');
const { observe } = await import('../../peers/run/observe.ts');
const { peer: hasty, deafPeer: deaf } = await import('./bad-peer.ts');

const BAD = join(import.meta.dirname, 'bad-peer.ts');
const WHOA = join(import.meta.dirname, '../../peers/adapters/whoa.ts');

/** These start many processes, and test/tasks and test/host-death do the same with more care. */
const SLOW = ['status', 'queued', 'after-crash', 'latency'];

/** Scenarios that it does not pass or does not offer. */
const NOT_YES: Readonly<Record<string, string>> = {
  'at-once': 'partly',
  pause: 'not offered',
  'time-travel': 'not offered',
  'typed-output': 'not offered',
  'on-npm': 'no',
};

const FAILS_HASTY = [
  'before-start',
  'text-in-result',
  'text-in-next',
  'finished-result',
  'usage-finished',
  'reason',
  'next-after-tool',
  'next-after-parallel',
  'model-told',
  'connection',
  'no-new-call',
  'no-new-request',
  'tool-signal',
  'late-effect',
  'child-process',
  'listeners',
];
const PASSES_HASTY = ['while-thinking', 'while-speaking', 'deaf-tool', 'twice', 'after-end', 'sibling'];
const LACKS_HASTY = [
  'one-call',
  'soft-stop',
  'replace',
  'steer',
  'pause',
  'other-process',
  'process-tree',
  'usage-cut',
];
const FAILS_DEAF = ['while-thinking', 'while-speaking', 'polite-tool', 'deaf-tool', 'same-tick'];

const runs = [
  ...scenarios
    .filter(({ id }) => !SLOW.includes(id))
    .map(({ id }) => ({ peer: whoa, id, expected: NOT_YES[id] ?? 'yes' })),
  ...FAILS_HASTY.map((id) => ({ peer: hasty, id, expected: 'no' })),
  ...PASSES_HASTY.map((id) => ({ peer: hasty, id, expected: 'yes' })),
  ...LACKS_HASTY.map((id) => ({ peer: hasty, id, expected: 'not offered' })),
  ...FAILS_DEAF.map((id) => ({ peer: deaf, id, expected: 'no' })),
];

const observed = new Map<object, Observation>();
let children: Awaited<ReturnType<typeof observeChildren>>;

// Most of the time they wait; but a process with too many at a time misses its own deadlines.
const AT_ONCE = 16;

beforeAll(async () => {
  const waiting = [...runs];
  const work = async (): Promise<void> => {
    for (let one = waiting.pop(); one !== undefined; one = waiting.pop()) {
      const { peer, id: wanted } = one;
      const scenario = scenarios.find(({ id }) => id === wanted)!;
      observed.set(one, await repeat(scenario, { peer, module: peer === whoa ? WHOA : BAD, times: 1 }));
    }
  };
  [children] = await Promise.all([observeChildren(), ...Array.from({ length: AT_ONCE }, work)]);
}, 120_000);

test.each(runs.map((one) => [one.peer.name, one.id, one.expected, one] as const))(
  '%s, %s: %s',
  (_name, _id, expected, one) => {
    const { result, seen } = observed.get(one)!;
    expect(result, seen).toBe(expected);
  },
);

test('a rejection that no one handles, and a process that crashes, are results', () => {
  expect(children.unhandled.result).toBe('no');
  expect(children.unhandled.seen).toContain('rude failed');
  expect(children.crashed).toEqual({ result: 'no', seen: 'the process ended: TypeError: not today' });
});

async function observeChildren() {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-peers-test-'));
  const module = join(folder, 'crash.mjs');
  await writeFile(module, 'throw new TypeError("not today");');
  const [unhandled, crashed] = await Promise.all([observe(BAD, 'unhandled'), observe(module, 'twice')]);
  await rm(folder, { recursive: true });
  return { unhandled, crashed };
}

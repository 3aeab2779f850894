// What each technique costs beside a bare process, on a quiet machine and beside two loops that fork all the time:
//   npm run bench -- processes [--json]
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type Containment, createContainment, detectContainments } from '@whoa/tools';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 60;
const WARM_UP = 10;
const FORKERS = 2;
/** How long a command runs before it is stopped. */
const UP_MS = 30;
const env = { PATH: '/usr/bin:/bin' };
const TREE = ['/bin/sh', '-c', 'sleep 60 & sleep 60; :'] as const;
const NOTHING = ['/bin/sh', '-c', ':'] as const;

/** How many times a bare stop, and how many times a bare start and end. */
const GOALS: Readonly<Record<string, { readonly stop: number; readonly whole: number }>> = {
  cgroup: { stop: 2, whole: 2.5 },
  namespace: { stop: 4, whole: 3 },
  // No goal of its own: what it takes grows with the machine.
  tags: { stop: 100, whole: 100 },
};

interface Way {
  /** Returns the time of a stop, what proved it, and when all processes were dead if that was later. */
  readonly stop: () => Promise<{ ms: number; verified: string; allMs?: number }>;
  /** Runs a command that does nothing, from its start to its proved end. */
  readonly whole: () => Promise<void>;
}

function startBare([file, ...args]: readonly [string, ...string[]]): ChildProcess {
  return spawn(file, args, { env, detached: true, stdio: 'ignore' });
}

function readChildren(pid: number): readonly string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean);
}

function isDead(pid: string): boolean {
  try {
    return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return true;
  }
}

const bare: Way = {
  async stop() {
    const child = startBare(TREE);
    await sleep(UP_MS);
    const family = readChildren(child.pid!);
    const startedAt = performance.now();
    process.kill(-child.pid!, 'SIGKILL');
    await once(child, 'exit');
    const ms = performance.now() - startedAt;
    while (!family.every(isDead)) await nextTurn();
    return { ms, verified: 'bare', allMs: performance.now() - startedAt };
  },
  async whole() {
    await once(startBare(NOTHING), 'exit');
  },
};

function contained(containment: Containment): Way {
  return {
    async stop() {
      const command = await containment.start({ argv: TREE, env });
      await sleep(UP_MS);
      const startedAt = performance.now();
      const { verified } = await command.end({ method: 'kill' });
      return { ms: performance.now() - startedAt, verified };
    },
    async whole() {
      const command = await containment.start({ argv: NOTHING, env });
      await command.exited;
      await command.end();
    },
  };
}

interface Samples {
  readonly stop: number[];
  readonly all: number[];
  readonly whole: number[];
  proved: number;
}

/** Takes turns, so that a busy moment of the machine meets all. */
async function measure(ways: ReadonlyMap<string, Way>): Promise<ReadonlyMap<string, Samples>> {
  const all = new Map<string, Samples>(
    [...ways.keys()].map((name) => [name, { stop: [], all: [], whole: [], proved: 0 }]),
  );
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    for (const [name, way] of ways) {
      const { ms, verified, allMs } = await way.stop();
      const startedAt = performance.now();
      await way.whole();
      if (round < 0) continue;
      const samples = all.get(name)!;
      samples.stop.push(ms);
      if (allMs !== undefined) samples.all.push(allMs);
      samples.whole.push(performance.now() - startedAt);
      if (verified === name) samples.proved++;
    }
  }
  return all;
}

function reportAll(samples: ReadonlyMap<string, Samples>, where: string): void {
  const { stop, all: dead, whole } = samples.get('bare')!;
  for (const [name, one] of samples) {
    const goal = GOALS[name];
    if (goal === undefined) continue;
    const measures = [
      { about: 'a stop, proved, beside kill(-pid, SIGKILL) and wait', ours: one.stop, bare: stop, atMost: goal.stop },
      { about: 'a stop, proved, beside a kill until all are dead', ours: one.stop, bare: dead, atMost: goal.stop },
      {
        about: '`sh -c :` until its end is proved, beside a bare one',
        ours: one.whole,
        bare: whole,
        atMost: goal.whole,
      },
    ];
    for (const { about, ours, bare: theirs, atMost } of measures) {
      report({
        name: `${name}, ${where}: ${about}`,
        ours: percentile(ours, 0.5),
        bare: percentile(theirs, 0.5),
        goal: { atMost },
        more: { unit: 'ms, p50', p95: percentile(ours, 0.95).toFixed(1), proved: `${one.proved}/${ROUNDS}` },
      });
    }
  }
}

const detected = await detectContainments();
const works = detected.filter(({ isAvailable, technique }) => isAvailable && technique in GOALS);
const containments = works.map(({ technique }) => ({ technique, containment: createContainment({ technique }) }));
const ways = new Map<string, Way>([
  ['bare', bare],
  ...containments.map(({ technique, containment }) => [technique, contained(containment)] as const),
]);
reportAll(await measure(ways), 'quiet');
const loops = Array.from({ length: FORKERS }, () =>
  spawn('sh', ['-c', 'while :; do /bin/true; done'], { stdio: 'ignore' }),
);
try {
  reportAll(await measure(ways), `beside ${FORKERS} forking loops`);
} finally {
  for (const loop of loops) loop.kill('SIGKILL');
  for (const { containment } of containments) await containment[Symbol.asyncDispose]();
}

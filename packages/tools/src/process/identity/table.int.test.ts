import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { Attribution } from './attribution.ts';
import { identify } from './identity.ts';
import { readLastPid, readPidMoment } from './pid-clock.ts';
import { Scope } from './scope.ts';
import { readTable } from './table.ts';
import { createHostTag, tagEnvironment, tagKey } from './tags.ts';

/** Starts a child under each pid that it reads, as only root can, and ends it on an empty line. */
const PROGRAM = `
  $| = 1;
  while (my $pid = <STDIN>) {
    chomp $pid;
    my $tid = pack('l', $pid);
    my $child = syscall(435, pack('Q11', (0) x 4, 17, (0) x 3, unpack('Q', pack('P', $tid)), 1, 0), 88);
    if ($child == 0) { sleep 60; exit 0 }
    print "$child\\n";
    <STDIN>;
    kill 'KILL', $child; waitpid $child, 0;
    print "gone\\n";
  }`;

function startForker(env = process.env) {
  const child = spawn('perl', ['-e', PROGRAM], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(async () => {
    child.stdin.end();
    await once(child, 'close');
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ask = async (line: string): Promise<string> => {
    child.stdin.write(`${line}\n`);
    return (await lines.next()).value as string;
  };
  return { pid: child.pid!, ask };
}

/** The pid of a process that has ended. */
function findFreePid(): number {
  return Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
}

// A child gets its pid before it appears. Between the two, the table can be read.
test.skipIf(process.getuid?.() !== 0).each(['each pid is tried', 'all are listed'])(
  'a process that appears under a pid that was free when the table was read makes it incomplete: %s',
  async (mode) => {
    const forker = startForker();
    const floor = mode === 'all are listed' ? 1 : forker.pid;
    for (let tries = 0; tries < 200; tries++) {
      const free = findFreePid();
      const table = readTable({ floor, last: readLastPid(), also: [] });
      const wasComplete = table.isComplete();
      const created = await forker.ask(`${free}`);
      const [isComplete, last] = [table.isComplete(), readLastPid()];
      await forker.ask('');
      // Other processes of this machine may have started meanwhile.
      if (!wasComplete || created !== `${free}` || last !== table.through) continue;
      expect(isComplete).toBe(false);
      return;
    }
    throw new Error('the machine was never quiet for long enough');
  },
);

test.skipIf(process.getuid?.() !== 0)(
  'a full look finds a child under a lower pid, even if others were given pids while they were counted',
  async () => {
    const free = findFreePid();
    const tag = createHostTag();
    const { forks, lastBefore } = readPidMoment();
    const forker = startForker(tagEnvironment({ PATH: process.env['PATH'] ?? '' }, tag, 1));
    const root = identify(forker.pid)!;
    // As on a busy machine: some pids were given out between two readings.
    const born = { last: root.pid, forks, lastBefore: lastBefore - 1_000 };
    const scope = new Scope(tagKey(tag, 1), { roots: [root], since: root.startTime, born });
    const attribution = new Attribution();
    attribution.add(scope);
    attribution.look();
    expect(await forker.ask(`${free}`)).toBe(`${free}`);
    attribution.look({ isFull: true });
    expect(scope.members.map(({ pid }) => pid).toSorted((a, b) => a - b)).toEqual([free, root.pid]);
    await forker.ask('');
  },
);

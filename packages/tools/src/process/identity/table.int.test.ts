import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { readLastPid } from './pid-clock.ts';
import { readTable } from './table.ts';

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

function startForker() {
  const child = spawn('perl', ['-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
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

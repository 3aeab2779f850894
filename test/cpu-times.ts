// The CPU time of each test file with everything that it started, as the kernel counts it: in a cgroup for each test worker.
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The cgroup of the stage, and the file that a line is added to for each test file. Set by `.ci/run`. */
const { WHOA_CPU_GROUP: parent, WHOA_CPU_TIMES: report } = process.env;

/** Returns what to call when the file has ended. */
export function countCpuTime(file: string): () => void {
  if (parent === undefined || report === undefined) return () => {};
  const group = join(parent, `worker-${process.pid}`);
  const isNew = mkdirSync(group, { recursive: true }) !== undefined;
  if (isNew) writeFileSync(join(group, 'cgroup.procs'), `${process.pid}`);
  const read = (): number =>
    Number(/^usage_usec (\d+)/.exec(readFileSync(join(group, 'cpu.stat'), 'utf8'))![1]) / 1_000;
  const before = read();
  return () => appendFileSync(report, `${Math.round(read() - before)} ${file}\n`);
}

// Runs before every test file: nobody may swallow a rejection, warn, or leave something running.
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { afterAll, beforeAll } from 'vitest';

const complaints: unknown[] = [];
const note = (complaint: unknown): void => {
  complaints.push(complaint);
};

// On Node 22 `node:sqlite` announces itself; that is no fault of ours.
const isExpected = (warning: Error): boolean => warning.message.startsWith('SQLite is an experimental feature');

const noteWarning = (warning: Error): void => void (isExpected(warning) || note(warning));

beforeAll(() => {
  process.on('unhandledRejection', note);
  process.on('warning', noteWarning);
});

afterAll(async () => {
  // Give a rejection that nobody handles the turn it needs to be noticed.
  await new Promise((resolve) => setImmediate(resolve));
  process.off('unhandledRejection', note);
  process.off('warning', noteWarning);
  await noteProcesses();
  // Files may share a process, and then this module.
  const found = complaints.splice(0);
  if (found.length > 0) throw new AggregateError(found, `unhandled or warned of: ${found.join('; ')}`);
});

/** Where the kernel tells: no child and no folder of a host is left. */
async function noteProcesses(): Promise<void> {
  if (process.platform !== 'linux' || !isMainThread) return;
  for (const pid of childProcesses()) {
    // A child without a command line has ended, and Node reads its end within a turn or two. A running one was left.
    while (isEnding(pid) && childProcesses().includes(pid)) await new Promise((resolve) => setImmediate(resolve));
    if (childProcesses().includes(pid)) note(new Error(`a process was left: ${pid} ${commandLineOf(pid)}`));
  }
  for (const name of readdirSync(tmpdir()).filter((entry) => entry.startsWith('whoa-host-'))) {
    const isOurs = readOrNothing(`${tmpdir()}/${name}/host.json`).includes(`"pid":${process.pid},`);
    if (isOurs) note(new Error(`a folder was left: ${name}`));
  }
}

const childProcesses = (): string[] =>
  readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1').split(' ').filter(Boolean);

const commandLineOf = (pid: string): string => readOrNothing(`/proc/${pid}/cmdline`);

const isEnding = (pid: string): boolean => commandLineOf(pid) === '';

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, 'latin1').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

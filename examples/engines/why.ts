// The same agent on BullMQ (with its Relay) and on Whoa, through five faults. Prints what each of them did.
//   node examples/engines/why.ts redis://localhost:6379 postgres://localhost/whoa
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTaskStore } from '@whoa/tasks';
import { count, tenant, waitForLine } from './why/agent.ts';
import { openBullmq } from './why/bullmq.ts';
import type { Side } from './why/side.ts';
import { openWhoa } from './why/whoa.ts';

const [redis = 'redis://localhost:6379', postgres = 'postgres://localhost/whoa'] = process.argv.slice(2);
const RACES = 40;

const FAULTS: Readonly<Record<string, (side: Side, folder: string) => Promise<string>>> = {
  'cancel from another process, in mid-tool': cancelInMidTool,
  'a newer message while one runs': newerMessage,
  [`${RACES} cancels that race the end`]: cancelRacesEnd,
  'a worker that computes past its lock': (side, folder) => book(side, folder, 'Oslo blocked'),
  'kill -9 of a worker, just after its tool': (side, folder) => book(side, folder, 'Bern dying'),
};

await requireServers();
const outputs = await Promise.all([runSide('bullmq', redis, openBullmq), runSide('whoa', postgres, openWhoa)]);
console.log(outputs.join('\n'));

/** Without a server, BullMQ would try to connect for ever. */
async function requireServers(): Promise<void> {
  const { hostname, port } = new URL(redis);
  const socket = connect(Number(port), hostname);
  await using store = createTaskStore(postgres);
  await Promise.all([once(socket, 'connect'), store.list({ tenant, limit: 1 })]).catch((error: Error) => {
    console.error(error.message);
    process.exit(1);
  });
  socket.destroy();
}

/** Injects all faults into one engine with two workers. Returns the results. */
async function runSide(kind: string, url: string, open: (url: string) => Side | Promise<Side>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-why-'));
  const workers = [startWorker(kind, url, folder), startWorker(kind, url, folder)];
  try {
    await using side = await open(url);
    await Promise.all(workers.map(isReady));
    const lines = [side.name];
    for (const [fault, tryIt] of Object.entries(FAULTS)) {
      lines.push(`  ${fault.padEnd(42)} ${await tryIt(side, folder)}`);
    }
    return `${lines.join('\n')}\n`;
  } finally {
    for (const worker of workers) worker.kill('SIGKILL');
    rmSync(folder, { recursive: true });
  }
}

async function cancelInMidTool(side: Side, folder: string): Promise<string> {
  const id = await side.start('slowly');
  await waitForLine(folder, 'searching slowly');
  const told = await side.cancel(id);
  const { status } = await side.ended(id);
  return `the caller hears "${told}"; it stopped, as "${status}"`;
}

async function newerMessage(side: Side, folder: string): Promise<string> {
  const older = await side.start('Rome later', 'chat');
  await waitForLine(folder, 'searching Rome later');
  const newer = await side.start('Paris', 'chat');
  const { status } = await side.ended(older);
  await side.ended(newer);
  const booked = ['Rome later', 'Paris'].filter((request) => count(folder, `booked ${request}`) > 0);
  return `the older one ends as "${status}"; booked: ${booked.join(' and ')}`;
}

async function cancelRacesEnd(side: Side): Promise<string> {
  const ids: string[] = [];
  for (let i = 0; i < RACES; i++) ids.push(await side.start(`${i} briefly`));
  const unaware = await Promise.all(
    ids.map(async (id) => {
      const told = await side.cancel(id);
      const { status } = await side.ended(id);
      return !status.includes('cancelled') && told !== 'too-late';
    }),
  );
  const count = unaware.filter(Boolean).length;
  return count === 0 ? 'every caller knows which came first' : `${count} callers did not hear that it was too late`;
}

async function book(side: Side, folder: string, request: string): Promise<string> {
  const { status, answer } = await side.ended(await side.start(request));
  const booked = count(folder, `booked ${request}`);
  return `booked ${booked === 1 ? 'once' : `${booked} times`}; "${status}": ${answer}`;
}

function startWorker(kind: string, url: string, folder: string): ChildProcess {
  return fork(join(import.meta.dirname, 'why/worker.ts'), [kind, url, folder]);
}

function isReady(worker: ChildProcess): Promise<void> {
  return new Promise((resolve) => worker.once('message', () => resolve()));
}

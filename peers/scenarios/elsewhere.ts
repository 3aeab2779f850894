import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import { until, within } from '../../packages/check/src/clock.ts';
import { type Harness, startHarness } from '../../packages/check/src/harness/harness.ts';
import { type Lab, NotReached } from '../core/lab.ts';
import type { RoleOptions } from '../core/role.ts';
import { missing, no, partly, type Scenario, type Verdict, yes } from '../core/scenario.ts';
import { calls, halfText } from './answers.ts';

/** Processes have to start, and a store may be polled only once a second. */
const WAIT_MS = 30_000;
const STOPPED_MS = 3_000;
const MAX_READS = 20;
/** How long a run must keep running by itself before it is stopped. */
const STEADY_MS = 500;

const run = promisify(execFile);

/** Several processes that share a folder and a provider. */
class Fleet implements AsyncDisposable {
  readonly harness: Harness;
  readonly #module: string;
  readonly #workers: ChildProcess[] = [];

  constructor({ module }: Lab, harness: Harness) {
    this.#module = module;
    this.harness = harness;
  }

  #arguments(role: string, options: Partial<RoleOptions>): string[] {
    const file = join(import.meta.dirname, '../core/role.ts');
    const { folder, provider, probe } = this.harness;
    const given: RoleOptions = { folder, url: provider.url, port: probe.port, ...options };
    return ['--conditions=@whoa/source', '--no-warnings', file, this.#module, role, JSON.stringify(given)];
  }

  /** Runs one role in a separate process, and returns what it prints. */
  async runRole(role: 'enqueue' | 'cancel' | 'status', id = ''): Promise<string> {
    try {
      const { stdout } = await run(process.execPath, this.#arguments(role, { id }), { timeout: WAIT_MS });
      return stdout.trim();
    } catch (error) {
      throw new NotReached(`the process for "${role}" did not succeed`, { cause: error });
    }
  }

  work(): ChildProcess {
    const worker = spawn(process.execPath, this.#arguments('work', {}), { stdio: ['pipe', 'ignore', 'inherit'] });
    this.#workers.push(worker);
    return worker;
  }

  async end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
    if (worker.exitCode !== null || worker.signalCode !== null) return;
    const gone = once(worker, 'exit');
    worker.kill(signal);
    await gone;
  }

  /** Waits until another process reads this status. */
  async reads(status: string, id: string): Promise<string> {
    let seen = '';
    for (let read = 0; read < MAX_READS && seen !== status; read++) seen = await this.runRole('status', id);
    return seen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) await this.end(worker, 'SIGKILL');
    await this.harness[Symbol.asyncDispose]();
  }
}

async function withFleet(
  lab: Lab,
  answer: ScriptedResponse,
  test: (fleet: Fleet) => Promise<Verdict>,
): Promise<Verdict> {
  if (lab.peer.elsewhere === undefined)
    return missing(lab.peer, 'elsewhere', 'a run is known only in the process that started it');
  await using fleet = new Fleet(lab, await startHarness(() => () => answer));
  return await test(fleet);
}

async function stopFromElsewhere(fleet: Fleet): Promise<{ id: string; by: string | undefined }> {
  const id = await fleet.runRole('enqueue');
  fleet.work();
  const started = fleet.harness.provider.waitForRequest(0);
  if (!(await within(WAIT_MS, started))) throw new NotReached('the run never began');
  const request = await started;
  await request.waitForStall();
  if (await within(STEADY_MS, request.waitForClose())) throw new NotReached('the run ended by itself');
  await fleet.runRole('cancel', id);
  await within(STOPPED_MS, request.waitForClose());
  return { id, by: request.closedBy };
}

export const elsewhere: readonly Scenario[] = [
  {
    id: 'other-process',
    group: 'elsewhere',
    expects: "Another process that knows only a run's id can stop it.",
    rule: 'Three processes share nothing but a store. The provider sees the client leave within 3 s of the cancel.',
    run: (lab) =>
      withFleet(lab, halfText, async (fleet) => {
        const { by } = await stopFromElsewhere(fleet);
        return by === 'client' ? yes('the run stopped') : no('the run continued');
      }),
  },
  {
    id: 'status',
    group: 'elsewhere',
    expects: 'Afterwards any process can read that the run was cancelled.',
    rule: 'A fourth process reads the status "cancelled".',
    run: (lab) =>
      withFleet(lab, halfText, async (fleet) => {
        const { id } = await stopFromElsewhere(fleet);
        const seen = await fleet.reads('cancelled', id);
        return seen === 'cancelled' ? yes('it reads "cancelled"') : no(`it reads "${seen}"`);
      }),
  },
  {
    id: 'queued',
    group: 'elsewhere',
    expects: 'A run that is still waiting can be stopped, and never begins.',
    rule: 'It is cancelled before a worker exists. A worker then sends no request, and the status is "cancelled".',
    run: (lab) =>
      withFleet(lab, halfText, async (fleet) => {
        const id = await fleet.runRole('enqueue');
        await fleet.runRole('cancel', id);
        fleet.work();
        const seen = await fleet.reads('cancelled', id);
        if (await until(STOPPED_MS, () => fleet.harness.provider.requests.length > 0))
          return no('the run began anyway');
        return seen === 'cancelled' ? yes('it never began') : partly(`it never began, but its status is "${seen}"`);
      }),
  },
  {
    id: 'after-crash',
    group: 'elsewhere',
    expects: 'A run whose process was killed can still be stopped, and is not started again.',
    rule: 'The worker is killed during a call, then the run is cancelled. A new worker starts no call; the status becomes "cancelled".',
    run: (lab) =>
      withFleet(lab, calls('polite'), async (fleet) => {
        const id = await fleet.runRole('enqueue');
        const worker = fleet.work();
        const { probe } = fleet.harness;
        if (!(await within(WAIT_MS, probe.waitForStart('polite', 'plain'))))
          throw new NotReached('the run never began');
        await fleet.end(worker, 'SIGKILL');
        await fleet.runRole('cancel', id);
        fleet.work();
        const seen = await fleet.reads('cancelled', id);
        if (probe.countStarts('polite') > 1) return no('the call was started again');
        return seen === 'cancelled' ? yes('it is cancelled, and nothing was started again') : no(`it reads "${seen}"`);
      }),
  },
];

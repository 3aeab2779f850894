// The watchdog: one small process per host, in its own session. It reads the running commands from standard input. When that
// closes, the host has ended or was killed, and the watchdog ends all its processes. It also ends a command whose stop the host
// began and did not finish in time, and all commands of a host that is frozen again and again: a command may have done that.
import { constants, setPriority } from 'node:os';
import { createInterface } from 'node:readline';
import { Guard } from './guard.ts';
import { type HostRecord, readRecord } from './host-directory.ts';
import { Scope } from './identity/scope.ts';
import { cleanUpAfterHost, endAll, endCommand, type GuardedCommand } from './leftovers.ts';
import { Sweeper } from './sweeper.ts';

/** What a host writes to its watchdog, one JSON text per line. */
export type WatchdogOrder =
  | { readonly started: GuardedCommand }
  | { readonly ended: GuardedCommand }
  /** The command must have ended within this time. */
  | { readonly ending: GuardedCommand; readonly withinMs: number };

/** Runs the watchdog in this process. Resolves when the host and all its processes have ended. */
async function watch(): Promise<void> {
  raisePriority();
  // Ignore signals that end the host.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const [, , folder = ''] = process.argv;
  const record = readRecord(folder);
  if (record === undefined) return;
  await warmUp();
  const commands = new Commands(record);
  for await (const line of { [Symbol.asyncIterator]: () => lines }) commands.obey(JSON.parse(line) as WatchdogOrder);
  await cleanUpAfterHost({ folder, record }, commands.running);
}

/** The commands that run. */
class Commands {
  readonly #record: HostRecord;
  readonly #running = new Map<number, GuardedCommand>();
  readonly #deadlines = new Map<number, NodeJS.Timeout>();
  readonly #guard: Guard;

  constructor(record: HostRecord) {
    this.#record = record;
    this.#guard = new Guard(() => void endAll(record, this.running).catch(() => {}));
  }

  get running(): readonly GuardedCommand[] {
    return [...this.#running.values()];
  }

  obey(order: WatchdogOrder): void {
    if ('started' in order) {
      this.#running.set(order.started.number, order.started);
      this.#guard.start(this.#record.host);
    } else if ('ending' in order) this.#bound(order.ending, order.withinMs);
    else this.#forget(order.ended.number);
  }

  #bound(command: GuardedCommand, withinMs: number): void {
    clearTimeout(this.#deadlines.get(command.number));
    const end = (): void => void endCommand(this.#record, command).catch(() => {});
    this.#deadlines.set(command.number, setTimeout(end, withinMs));
  }

  #forget(number: number): void {
    this.#running.delete(number);
    clearTimeout(this.#deadlines.get(number));
    this.#deadlines.delete(number);
    if (this.#running.size === 0) this.#guard.stop();
  }
}

/** Run soon on a busy machine. Only root may raise the priority. */
function raisePriority(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGH);
  } catch {
    // Not permitted.
  }
}

/** The first look is slow, so do one now. */
async function warmUp(): Promise<void> {
  const nobody = new Scope('nobody', { roots: [], since: Infinity });
  const sweeper = new Sweeper();
  sweeper.add(nobody);
  await sweeper.end(nobody, { graceMs: 0 });
}

await watch();
process.exit(0);

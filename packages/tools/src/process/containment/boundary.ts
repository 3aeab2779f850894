import type { ProcessIdentity, ProcessStatus } from '../identity/identity.ts';
import { signalProcess } from '../signal.ts';

/** What the kernel keeps around one command. It ends all processes inside in one step, and reports when none is left. */
export interface Boundary {
  readonly verified: 'cgroup' | 'namespace';
  /** The processes of the command inside, parents first. */
  members(): readonly ProcessStatus[];
  isEmpty(): boolean;
  /** Asks the group that the first process leads in one step. Returns its id if it did. */
  askGroup?(): number | undefined;
  /** Ends everything inside. */
  kill(): void;
  /** Resolves when nothing is left inside, or after a time, or when the signal aborts. Returns whether nothing is. */
  waitUntilEmpty(maxMs: number, signal?: AbortSignal): Promise<boolean>;
  /** Removes the empty boundary. */
  remove?(): void;
}

/** What is known after an end. */
export interface Ended {
  readonly verified: 'cgroup' | 'namespace' | 'tags' | 'no';
  readonly ended: number;
  readonly survivors: readonly ProcessIdentity[];
}

/** How long killed processes may take to end before they count as survivors. */
export const MAX_KILL_MS = 1_500;

/** How often to look for the processes of a command that is just starting. */
const STARTING_MS = 5;

/** Ends everything inside: TERM and CONT, a grace period that the signal ends, and KILL. */
export async function endBoundary(
  boundary: Boundary,
  { graceMs, hurry }: { graceMs: number; hurry: AbortSignal },
): Promise<Ended> {
  const until = performance.now() + graceMs;
  let members = boundary.members();
  let isEmpty = members.length === 0 && boundary.isEmpty();
  let ended = isEmpty ? 0 : Math.max(1, members.length);
  const isPatient = (): boolean => !isEmpty && performance.now() < until && !hurry.aborted;
  while (members.length === 0 && isPatient()) {
    isEmpty = await boundary.waitUntilEmpty(STARTING_MS, hurry);
    members = boundary.members();
    ended = Math.max(ended, members.length);
  }
  if (isPatient()) {
    ask(members, boundary.askGroup?.());
    isEmpty = await boundary.waitUntilEmpty(until - performance.now(), hurry);
  }
  if (!isEmpty) {
    boundary.kill();
    isEmpty = await boundary.waitUntilEmpty(MAX_KILL_MS);
  }
  const survivors = isEmpty ? [] : boundary.members();
  boundary.remove?.();
  return { verified: isEmpty ? boundary.verified : 'no', ended: Math.max(0, ended - survivors.length), survivors };
}

/** Asks processes to end, unless their group was. Sends CONT too: stopped processes do not handle TERM. */
export function ask(members: readonly ProcessStatus[], group?: number): void {
  for (const member of members) {
    if (member.group !== group && signalProcess(member, 'SIGTERM') === 'sent') signalProcess(member, 'SIGCONT');
  }
}

export function whenAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) resolve();
    signal?.addEventListener('abort', () => resolve(), { once: true });
  });
}

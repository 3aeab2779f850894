import type { Agent, CancellationToken, Json } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import type { Cleanup } from '@whoa/core/internal';
import type { JournalEntry, TaskOutcome, TaskRecord } from '../task.ts';
import type { AdoptedRun } from './adopted-run.ts';

/** The context of work that is not an agent. */
export interface TaskContext {
  readonly task: TaskRecord;
  /** The earlier messages of the conversation. */
  readonly history: readonly Json[];
  /** The journal that lost workers left; empty on the first run. */
  readonly previousJournal: readonly JournalEntry[];
  readonly token: CancellationToken;
  readonly signal: AbortSignal;
  /**
   * Writes an event to the task's journal. Resolves when it is stored, so a crash cannot lose it. It counts as progress:
   * earlier crashes are no longer charged to the task.
   */
  readonly journal: (event: { readonly type: string } & Record<string, Json>) => Promise<void>;
  /** Registers a cleanup that runs when the work has ended, however it ended. */
  readonly defer: (cleanup: Cleanup) => void;
}

/** Any async function. It returns the answer (a string) or a result. */
export type TaskFunction = (context: TaskContext) => Promise<Json | undefined>;

/**
 * Work that reports its own end and stops itself. It is never abandoned: the task does not end until `hold` resolves,
 * even after a `kill`.
 */
export interface SelfManagedWork {
  /** If it rejects, it may still run: the task is not handed back, and its claim ends with the lease. */
  runTask(context: SelfManagedContext): Promise<TaskOutcome>;
  /**
   * Ends a task that was being cancelled when its worker was lost. Defaults to what the journal says about an agent.
   */
  settle?(context: SelfManagedContext): Promise<TaskOutcome>;
}

export type SelfManagedContext = Omit<TaskContext, 'signal' | 'defer'>;

/** What a task can run: an agent, any async function, or work that reports its own end. */
export type TaskHandler = Agent | TaskFunction | SelfManagedWork;

/** Returns what runs a task. A task that only has to be settled needs no agent, unless calls must be undone. */
export function findWork(
  agents: Readonly<Record<string, TaskHandler>>,
  { agent, status, stop }: Pick<TaskRecord, 'agent' | 'status' | 'stop'>,
): TaskHandler | undefined {
  // Check own properties: the agent name may come from anywhere, and 'constructor' is not an agent.
  if (Object.hasOwn(agents, agent)) return agents[agent];
  return status === 'cancelling' && stop?.undo !== true ? () => Promise.resolve(undefined) : undefined;
}

export function isAgent(work: TaskHandler | AdoptedRun): work is Agent {
  return typeof work === 'object' && 'run' in work;
}

export function isHeldWork(work: TaskHandler | AdoptedRun): work is SelfManagedWork {
  return typeof work === 'object' && 'runTask' in work;
}

export function isAdopted(work: TaskHandler | AdoptedRun): work is AdoptedRun {
  return typeof work === 'object' && 'adopted' in work;
}

/** Converts a message for an agent: a string becomes a user message. */
export function toUserMessage(message: Json): UserMessage {
  const given = message as unknown as UserMessage;
  return typeof given === 'object' && given !== null && 'role' in given
    ? given
    : { role: 'user', content: message as string };
}

import type { Readable, Writable } from 'node:stream';
import type { Clock } from '@whoa/core/embed';
import type { FrameId } from '../wire/frame.ts';

/** A moment in the life of an agent's process. */
export interface AgentMoment {
  readonly pid: number;
  readonly startTime: number;
}

/** A stretch of time; without `until` it lasts. */
export interface AgentSpan {
  readonly since: AgentMoment;
  readonly until?: AgentMoment | undefined;
}

/** What is known after processes were ended; `verified` as in `CleanupReport` of `@whoa/tools`. */
export interface AgentCleanup {
  readonly verified: 'namespace' | 'cgroup' | 'tags' | 'no';
  readonly ended: number;
  readonly survivors: number;
  /** How many running processes may belong to another prompt and were left alone, if any. */
  readonly shared?: number;
}

/** An agent that was started. `ContainedProcess` of `@whoa/tools` is one, if its streams are pipes. */
export interface ProxiedAgent {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly exited: Promise<{ readonly code: number | null }>;
  /** Returns the current moment, for `endSince`. */
  now(): AgentMoment;
  /** Ends what it started after a moment, while it continues; not what was started in `except`. */
  endSince(
    moment: AgentMoment,
    options: {
      readonly except: readonly AgentSpan[];
      /** Called when the known processes are dead; the proof may follow later. */
      readonly onDead?: () => void;
    },
  ): Promise<AgentCleanup>;
  /** Ends it and everything it started. */
  end(): Promise<AgentCleanup>;
}

/** How the agent took a stop: `answered-for` means that it had not answered in time, `exited` that its process had ended. */
export type Obedience = 'cancelled' | 'other-answer' | 'error' | 'answered-for' | 'exited';

/** What one stop did to one prompt. Reported when the end of its processes is proved, which may be after the answer. */
interface ProxyStopReport {
  readonly type: 'stop';
  readonly session: string;
  /** The id of the prompt's request. */
  readonly prompt: FrameId;
  /** What asked for it: a method, `input-end` or a signal. */
  readonly by: string;
  readonly agent: Obedience;
  readonly ms: number;
  /** Calls and questions that the proxy closed because the agent had not. */
  readonly closedCalls: number;
  readonly closedQuestions: number;
  /** Processes that the prompt had started; missing if they cannot be told from those of another prompt. */
  readonly processes?: AgentCleanup;
}

/** Something that users of the proxy should know. */
export type ProxyEvent =
  | ProxyStopReport
  | { readonly type: 'restart'; readonly why: string }
  | { readonly type: 'restore'; readonly session: string; readonly mode: 'resume' | 'load' | 'new' }
  | { readonly type: 'problem'; readonly message: string }
  | { readonly type: 'end'; readonly by: string; readonly dropped: number; readonly processes: AgentCleanup };

/** The agent behind a proxy, and the streams of the editor. */
export interface ProxyOptions {
  /** Starts the agent. It is called again if the agent had to be ended. */
  readonly start: () => Promise<ProxiedAgent>;
  /** How long an agent may take to answer a cancel before it is answered for; defaults to 800 ms. */
  readonly waitMs?: number | undefined;
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
  /** Default to the process's standard streams. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
  readonly clock?: Clock | undefined;
}

/** A connection between an editor and an agent. */
export interface AcpProxy extends AsyncDisposable {
  /** Resolves when it is over and nothing of the agent runs. Never rejects. */
  readonly closed: Promise<{ readonly code: number }>;
  /** Ends the agent and its processes, and closes the connection. */
  close(by: string): Promise<{ readonly code: number }>;
}

import type { CheckHarness } from './harness/check-harness.ts';

/** The protocols that the kit supports. */
export const PROTOCOLS = ['acp', 'mcp', 'a2a', 'ag-ui', 'chat'] as const;
/** One of the protocols. */
export type Protocol = (typeof PROTOCOLS)[number];

/**
 * What a check may need. The first ones depend on the protocol, the others on the agent; those are found out by the first
 * prompts of a run.
 */
export type Feature =
  /** There is a way to cancel. */
  | 'cancel'
  /** A turn belongs to a conversation that remembers the ones before. */
  | 'conversation'
  /** A prompt and a cancel can arrive in one piece, in order. */
  | 'one-piece'
  /** The end of a turn says that it was cancelled. */
  | 'outcome'
  /** Words of the model are shown as they come. Assumed, unless an adapter says why not. */
  | 'text'
  /** A turn can be cancelled by its id, from any connection. */
  | 'cancel-by-id'
  /** Calls of tools are shown with their status. */
  | 'calls'
  /** A second way to cancel: by the id of the request. */
  | 'cancel-request'
  /** A conversation can be closed. */
  | 'close'
  /** A task can be asked for its status by its id, from any connection. */
  | 'status'
  /** There is a second instance of the same server. */
  | 'second-instance'
  /** The kit started the process of the agent, and may kill it. */
  | 'process'
  /** The kit can kill the server and start it again on the same store. */
  | 'restart'
  /** The agent reads standard input, and should end when it ends. */
  | 'stdio'
  /** The agent asks the kit's provider. */
  | 'model'
  /** The agent can run the probe: it has a shell tool, or the kit's MCP server. */
  | 'tool'
  /** The probe runs as processes of the agent. */
  | 'shell'
  /** The agent asks before it runs the probe. */
  | 'question';

/** What is offered; for the rest, why not. */
export type Features = { readonly [Name in Feature]?: true | string | undefined };

/** How a turn ended, whatever its protocol calls it. */
export interface TurnEnd {
  /** `gone`: the connection or the process ended without an answer. */
  readonly kind: 'cancelled' | 'completed' | 'error' | 'gone';
  /** The protocol's own words. */
  readonly detail: string;
}

/** Something that was seen of a turn, in order. */
export type Observation =
  | { readonly what: 'text'; readonly text: string }
  | { readonly what: 'call'; readonly id: string; readonly isOpen: boolean; readonly detail: string }
  | { readonly what: 'question'; readonly answer: (answer: Answer) => void; readonly isWithdrawn: () => boolean }
  | { readonly what: 'end'; readonly end: TurnEnd }
  /** Something else that belongs to this turn. */
  | { readonly what: 'other'; readonly detail: string };

/** An answer to an agent's question: the person allows it, or cancels the turn. */
export type Answer = 'allow' | 'cancelled';

/** A prompt and all that was seen of it, also after its end. */
export interface Turn {
  readonly observations: readonly Observation[];
  /** The first end. Never rejects. */
  readonly ended: Promise<TurnEnd>;
  /** The id by which other connections can name it. */
  readonly id?: () => Promise<string>;
  /** Resolves when something like this has been seen; rejects when the turn ended before. */
  waitFor(matches: (observation: Observation) => boolean): Promise<Observation>;
}

export interface Conversation {
  start(prompt: string): Turn;
  /** Cancels what runs in it, or nothing. */
  cancel(): Promise<void>;
  /** Sends a prompt and a cancel in one piece. */
  startWithCancel?(prompt: string, order: 'prompt-first' | 'cancel-first'): Turn;
  /** Cancels the request of this turn, if the protocol has a second way. */
  cancelRequest?(turn: Turn): Promise<void>;
  close?(): Promise<void>;
}

export interface Connection extends AsyncDisposable {
  /** As the agent introduces itself: its name and version. */
  readonly agent: string;
  /** What this agent does not offer although its protocol does, and why. */
  readonly features?: Features;
  readonly process?: AgentProcess;
  /** Answers questions from now on: immediately, or only when the check does. Starts with `allow`. */
  answerQuestions(mode: 'allow' | 'by-check'): void;
  open(): Promise<Conversation>;
  /** Gives the conversations that are opened from now on the kit's MCP server, for an agent without a shell. */
  offerProbe?(command: readonly string[]): void;
  /** Cancels something that does not exist; resolves with what the agent said. */
  cancelUnknown(): Promise<string>;
  /** How a task of any connection stands. */
  status?(id: string): Promise<TurnEnd['kind'] | 'running'>;
  /** Cancels a task of any connection. */
  cancelTask?(id: string): Promise<string>;
}

/** A process that the kit started. */
export interface AgentProcess {
  readonly exited: Promise<void>;
  readonly hasExited: () => boolean;
  /** The end of what it wrote to standard error. */
  readonly stderrTail: () => string;
  endInput(): void;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

/** Connects to one agent by one protocol. */
export interface Adapter extends AsyncDisposable {
  readonly protocol: Protocol;
  readonly features: Features;
  /** Connects to the agent. */
  connect(harness: CheckHarness): Promise<Connection>;
  /** A connection to the second instance. */
  connectSecond?(harness: CheckHarness): Promise<Connection>;
  /** Kills the server that the kit started and starts it again. */
  restart?(harness: CheckHarness): Promise<void>;
}

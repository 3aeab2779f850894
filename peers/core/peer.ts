// The interface between the scenarios and a library. One adapter for each implements it, following the library's documentation.

/** The vendor format in which the library talks to its model. */
export type Wire = 'chat' | 'responses' | 'anthropic';

export interface PeerTool {
  readonly name: string;
  readonly description: string;
  /** Whether a person must approve each call. */
  readonly needsApproval?: boolean;
  execute(call: { readonly signal: AbortSignal | undefined }): Promise<string>;
}

export interface OpenOptions {
  /** The base address of the loopback provider. It ends in `/v1`. */
  readonly url: string;
  readonly wire: Wire;
  readonly tools: readonly PeerTool[];
  /** Called before calls of tools that need approval, with the signal that withdraws the question if there is one. */
  readonly approve?: (signal: AbortSignal | undefined) => Promise<boolean>;
  /** The tools of another agent, which this one gets as a tool named `helper`. */
  readonly helper?: readonly PeerTool[];
  /** Whether the runs are replies of one conversation, whose newer messages take the place of older ones. */
  readonly isConversation?: boolean;
  /** Whether to add the library's own tool for shell commands. */
  readonly shell?: boolean;
}

export interface StartOptions {
  /** The `session` of an earlier run of this agent. */
  readonly session?: unknown;
  /** A signal of the caller, which may live longer than the run or be aborted already. */
  readonly signal?: AbortSignal;
}

/** How a run ended, according to the library's public interface. */
export interface Ending {
  /** Whether the library calls it cancelled, and not finished or failed. */
  readonly isCancelled: boolean;
  /** The library's own term for that, for example `finishReason: aborted`. */
  readonly says: string;
  readonly text?: string | undefined;
  readonly usage?: { readonly input: number; readonly output: number } | undefined;
  readonly reason?: string | undefined;
  readonly session: unknown;
}

export interface PeerRun {
  /** Resolves when the library reports that the run has ended. Never rejects. */
  readonly ended: Promise<Ending>;
  /** The text that a reader of the stream has seen so far. */
  text(): string;
  cancel(reason: string): void;
  /** Names of tools whose end the library reported after the run had ended. */
  readonly late?: readonly string[];
  /** Stops one call only. */
  cancelCall?(tool: string): void;
  /** Stops after the calls that are running. */
  stopSoftly?(): void;
  /** Adds a message to the run, for its next model request. */
  steer?(message: string): void;
  /** Sends a message that takes the place of this run, and resolves with the end of the new one. */
  replace?(message: string): Promise<Ending>;
}

export interface PeerAgent {
  /** Starts a run in this very tick. */
  start(input: string, options?: StartOptions): PeerRun;
  close?(): PromiseLike<void> | void;
}

/** Runs that other processes can see. Each method is called in a separate process, with the same `folder`. */
interface Elsewhere {
  /** Creates a run that waits to be worked on, and returns its id. */
  enqueue(folder: string): Promise<string>;
  /** Runs waiting tasks until the standard input ends. */
  work(folder: string, options: OpenOptions): Promise<void>;
  cancel(folder: string, id: string): Promise<void>;
  status(folder: string, id: string): Promise<string>;
}

export interface Peer {
  readonly name: string;
  /** The first one is the one that its documentation shows first. */
  readonly wires: readonly Wire[];
  /** Whether a run takes an AbortSignal of the caller. */
  readonly takesSignal: boolean;
  /** The library's own tool for shell commands: its name. */
  readonly shell?: string;
  /** The name under which it shows a sub-agent to the model. Defaults to `helper`. */
  readonly helper?: string;
  /** Features that it does not offer, by scenario or group, with what it has instead. */
  readonly notOffered: Readonly<Record<string, string>>;
  /** Features that it offers in a way that does not run here, by scenario or group. */
  readonly notRun?: Readonly<Record<string, string>>;
  open(options: OpenOptions): Promise<PeerAgent> | PeerAgent;
  readonly elsewhere?: Elsewhere;
  /** Runs until a call needs approval, and ends. `resume` approves it and continues. */
  pause?(options: OpenOptions): Promise<{ readonly paused: boolean; resume(): Promise<string> }>;
  /** Runs a turn, returns to the state before its last reply, and continues with a different one. */
  travel?(options: OpenOptions): Promise<string>;
  /** Requests an object with the one field `city`. */
  typed?(options: OpenOptions): Promise<unknown>;
}

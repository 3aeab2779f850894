import type { FrameId } from '../wire/frame.ts';
import { type Fields, type Message, toText } from './message.ts';
import type { AgentCleanup, AgentMoment } from './options.ts';

/** A prompt that the agent works on. */
export interface Prompt {
  readonly id: FrameId;
  /** v2 answers a prompt when it begins. */
  isAnswered: boolean;
}

/** A stop of prompts, until they are answered. */
export interface Stop {
  readonly prompts: readonly Prompt[];
  /** What asked for it. */
  readonly by: string;
  readonly startedAt: number;
  readonly end: PromiseWithResolvers<void>;
  /** What the agent said of the prompts. */
  readonly answers: Map<FrameId, Message>;
  /** The same in v2: the update that says that the work is over. */
  idle?: Message;
  hasExited: boolean;
  /** Later output belongs to no one. */
  isEnding: boolean;
  timer?: Disposable;
  closedQuestions: number;
  cleanup?: AgentCleanup;
  /** Called when the known processes are dead. */
  onDead?: () => void;
}

/** How many calls of cancelled prompts are remembered, so that late news of them are dropped. */
const MAX_DEAD_CALLS = 1_000;
/** How many stretches of work are remembered. */
const MAX_SPANS = 32;
const CLOSED = new Set(['completed', 'failed', 'cancelled']);

/** What is known of one session, from the messages that passed. */
export class ProxySession {
  /** Its id at the editor. */
  readonly id: string;
  /** Its id at the agent: another one if the agent had to start again. */
  agentId: string;
  /** The request that opened it. */
  setup: Fields | undefined;
  /** The last choice of each setting, to be repeated. */
  readonly choices: Map<string, Pick<Message, 'method' | 'params'>> = new Map();
  readonly prompts: Map<FrameId, Prompt> = new Map();
  stop: Stop | undefined;
  /** Messages that wait for the end of a stop, or for the session to be restored. */
  readonly held: Message[] = [];
  isWaking = false;
  /** Prompts that were answered for. The agent works on them until it answers. */
  readonly owed: Set<FrameId> = new Set();
  /** The same in v2, where an update says that the work is over. */
  owesIdle = false;
  readonly calls: Set<string> = new Set();
  readonly #dead = new Set<string>();
  readonly terminals: Set<string> = new Set();
  /** v2: the agent says that it works. */
  isActive = false;
  /** Its last prompt was cancelled, and there is none since. */
  isQuiet = false;
  /** The process that knew it is gone. */
  isLost = false;
  isRestoring = false;
  notice: string | undefined;
  /** When prompts ran in it. */
  readonly spans: { readonly since: AgentMoment; until?: AgentMoment }[] = [];
  onSettled: () => void = () => {};

  constructor(id: string) {
    this.id = id;
    this.agentId = id;
  }

  get isOwed(): boolean {
    return this.owed.size > 0 || this.owesIdle;
  }

  /** Whether nothing of the agent is wanted in it. */
  get isSilent(): boolean {
    return this.isOwed || this.isRestoring || (this.isQuiet && this.prompts.size === 0);
  }

  begin(id: FrameId, now: AgentMoment): void {
    this.isQuiet = false;
    if (this.prompts.size === 0 && this.spans.push({ since: now }) > MAX_SPANS) this.spans.shift();
    this.prompts.set(id, { id, isAnswered: false });
  }

  finish(id: FrameId, now: AgentMoment): void {
    if (!this.prompts.delete(id) || this.prompts.size > 0) return;
    const span = this.spans.at(-1);
    if (span !== undefined) span.until = now;
  }

  /** Remembers a call, and whether it is open. Returns whether it belongs to a cancelled prompt. */
  recordCall(update: Fields): boolean {
    const id = toText(update['toolCallId']);
    if (id === undefined) return false;
    if (this.#dead.has(id)) return true;
    const status = toText(update['status']);
    if (status !== undefined && CLOSED.has(status)) this.calls.delete(id);
    else if (status !== undefined || update['sessionUpdate'] === 'tool_call') this.calls.add(id);
    return false;
  }

  /** Closes all open calls and returns them. */
  buryCalls(): readonly string[] {
    const open = [...this.calls];
    this.calls.clear();
    for (const id of open) this.#dead.add(id);
    for (const id of this.#dead) if (this.#dead.size > MAX_DEAD_CALLS) this.#dead.delete(id);
    return open;
  }

  /** The editor opens it again: the history comes again, with the calls in it. */
  reopen(setup: Fields): void {
    this.setup = setup;
    this.isQuiet = false;
    this.isLost = false;
    this.calls.clear();
    this.#dead.clear();
  }

  /** Its process is gone, and with it what it owed. */
  lose(): void {
    this.isLost = this.setup !== undefined;
    this.owed.clear();
    this.owesIdle = false;
    this.isActive = false;
    this.terminals.clear();
    this.onSettled();
  }

  /** The agent has answered what it owed; without an id, v2 says that all work is over. */
  pay(id?: FrameId): void {
    const isPaid = id === undefined ? this.owesIdle : this.owed.delete(id);
    if (id === undefined) this.owesIdle = false;
    if (isPaid && !this.isOwed) this.onSettled();
  }
}

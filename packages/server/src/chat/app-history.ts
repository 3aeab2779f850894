import { isDeepStrictEqual } from 'node:util';
import type { Json } from '@whoa/core';
import { systemClock } from '@whoa/core/embed';
import { describeError, settings } from '@whoa/core/internal';
import type { SelfManagedWork, TaskOutcome, TaskRecord } from '@whoa/tasks';
import type { UIMessage } from 'ai';
import type { Principal } from '../http/access/principal.ts';
import { HttpError } from '../http/http-error.ts';
import { findAnswers } from './answers.ts';
import { HISTORY_AGENT } from './history-work.ts';
import { findReplacedCalls, withReplacedCalls } from './replaced-calls.ts';
import { reportPart, withReport } from './stop-reports.ts';
import { asJson } from './ui/call-parts.ts';

/** The chat that is loaded or saved, and for whom. */
interface ChatOwner {
  readonly chatId: string;
  readonly principal: Principal;
  /** Fires when the time is over. What comes later is ignored. */
  readonly signal: AbortSignal;
}

/** A chat as your database has it. */
export interface LoadedChat {
  readonly messages: readonly UIMessage[];
  /** Anything that changes with every save: a counter, a hash, a time. */
  readonly version: string | number | null;
}

/** A change of a chat. Save all of it or nothing, in one transaction. */
interface ChatChange extends ChatOwner {
  /** The whole chat as it is now, in order. */
  readonly messages: readonly UIMessage[];
  /** The messages that are no longer part of it. */
  readonly removedIds: readonly string[];
  /** The version that the change is based on. If yours is another one, save nothing and return `conflict`. */
  readonly expectedVersion: LoadedChat['version'];
}

/** Your own database as the place where chats are kept. */
export interface ChatHistory {
  /** Returns a chat, or no messages if there is none. */
  readonly load: (chat: ChatOwner) => LoadedChat | PromiseLike<LoadedChat>;
  /**
   * Saves a change. Called when a user's message is admitted and after each end, at least once: the same change may
   * come twice, also from another process.
   */
  readonly save: (change: ChatChange) => SaveAnswer | PromiseLike<SaveAnswer>;
  /** How long `load` and `save` may take, each. Defaults to 5 s. */
  readonly timeoutMs?: number | undefined;
}

type SaveAnswer = Pick<LoadedChat, 'version'> | 'conflict';
type SelfManagedContext = Parameters<SelfManagedWork['runTask']>[0];
type Messages = readonly UIMessage[];
type Owner = Omit<ChatOwner, 'signal'>;

const TIMEOUT_MS = 5_000;

/** Reads chats from the application's database, and saves what tasks change in them. */
export class AppHistory {
  readonly #history: ChatHistory;
  readonly #report: (error: unknown) => void;

  constructor(history: ChatHistory, report: (error: unknown) => void) {
    if (!settings.hasMethods(history, ['load', 'save']))
      throw settings.unexpected('history', history, 'an object with the functions `load` and `save`');
    this.#history = history;
    this.#report = report;
  }

  /** Returns a chat, for a request. Throws an `HttpError` if the database does not answer. */
  async read(owner: Owner): Promise<LoadedChat> {
    try {
      return await this.#load(owner);
    } catch (error) {
      this.#report(error);
      const message = 'The history of this chat could not be loaded, and nothing was changed; try again';
      throw new HttpError(503, { code: 'history-unavailable', message });
    }
  }

  /**
   * Wraps work of a chat: what it finds as history comes from the database, and what it says is saved there before its
   * task ends. Everything is derived from the stored task, so whoever takes the task over does the same again.
   */
  wrap(work: SelfManagedWork): SelfManagedWork {
    return {
      runTask: (context) => this.#perform(context, (given) => work.runTask(given)),
      ...(work.settle && { settle: (context) => this.#perform(context, (given) => work.settle!(given)) }),
    };
  }

  async #perform(context: SelfManagedContext, perform: SelfManagedWork['runTask']): Promise<TaskOutcome> {
    const { token } = context;
    let { task } = context;
    const isReply = task.agent !== HISTORY_AGENT;
    const owner = { chatId: task.conversation!, principal: findStarter(task) };
    let known: LoadedChat;
    try {
      known = await this.#load(owner);
      if (isRegenerate(task) && token.reason !== undefined && context.previousJournal.length === 0)
        return toOutcome(context, undefined);
      if (isRegenerate(task)) task = withReplaced(task, known.messages);
      if (isReply) known = await this.#admit(owner, known, task);
    } catch (error) {
      this.#report(error);
      return { ...toOutcome(context, error), ...unsaved(error) };
    }
    const own = new Set(isReply && findAnswers(task) === undefined ? task.inputs.map(getId) : []);
    // A reply never goes because a user's message has its id.
    const before = known.messages.filter(({ id, role }) =>
      role === 'user' ? !own.has(id) : own.size === 0 || id !== task.id,
    );
    const {
      newMessages = [],
      history,
      ...outcome
    } = await perform({ ...context, task, history: asJson(before) as Json[] });
    // Whoever has the task now saves it. A change that was cancelled must change nothing.
    if (token.reason?.kind === 'lease-lost') return outcome;
    if (!isReply && token.reason !== undefined) return toOutcome(context, undefined);
    const messages = (history ?? [...before, ...newMessages]) as unknown as Messages;
    const report = outcome.stopReport === undefined ? undefined : reportPart({ id: task.id, outcome });
    const replyId = findAnswers(task)?.messageId ?? task.id;
    const next = messages.map((one) => (report && one.id === replyId ? withReport(one, report) : one));
    if (!isReply && isDeepStrictEqual(next, known.messages)) return outcome;
    try {
      await this.#save(owner, known, next);
      return outcome;
    } catch (error) {
      this.#report(error);
      return { ...outcome, ...(isReply ? {} : toOutcome(context, error)), ...unsaved(error) };
    }
  }

  /** Saves the user's message. If that fails, the reply's own save contains it; but nothing is removed without a yes. */
  async #admit(owner: Owner, known: LoadedChat, task: TaskRecord): Promise<LoadedChat> {
    const next = withAsked(known.messages, task);
    if (isDeepStrictEqual(next, known.messages)) return known;
    try {
      return await this.#save(owner, known, next);
    } catch (error) {
      if (isRegenerate(task)) throw error;
      this.#report(error);
      return known;
    }
  }

  /** Saves a chat. If another writer was faster, or the answer was lost, the change is made once more, to what there is now. */
  async #save(owner: Owner, known: LoadedChat, next: Messages): Promise<LoadedChat> {
    let cause: unknown;
    let [base, messages] = [known, next];
    for (const isLast of [false, true]) {
      try {
        const saved = await this.#saveOnce(owner, base, messages);
        if (saved !== undefined) return saved;
        cause = new Error('save: another writer has changed the chat in the meantime; load it again');
      } catch (error) {
        cause = error;
      }
      if (isLast) break;
      base = await this.#load(owner);
      messages = reapply(base.messages, known.messages, next);
    }
    throw cause;
  }

  async #saveOnce(owner: Owner, base: LoadedChat, messages: Messages): Promise<LoadedChat | undefined> {
    const kept = new Set(messages.map(getId));
    const removedIds = base.messages.map(getId).filter((id) => !kept.has(id));
    const change = { ...owner, messages, removedIds, expectedVersion: base.version };
    const answer = await this.#call('save', (signal) => this.#history.save({ ...change, signal }));
    if (answer === 'conflict') return undefined;
    if (!settings.isObject(answer) || answer.version === undefined)
      throw settings.unexpected('save', answer, "to return { version } or 'conflict'");
    return { messages, version: answer.version };
  }

  async #load(owner: Owner): Promise<LoadedChat> {
    const loaded = await this.#call('load', (signal) => this.#history.load({ ...owner, signal }));
    if (!settings.isObject(loaded) || !Array.isArray(loaded.messages) || loaded.version === undefined)
      throw settings.unexpected('load', loaded, 'to return { messages, version }');
    return { messages: asJson(loaded.messages) as unknown as Messages, version: loaded.version };
  }

  /** Waits for the application, for a bounded time. */
  async #call<T>(name: 'load' | 'save', call: (signal: AbortSignal) => T | PromiseLike<T>): Promise<T> {
    const { timeoutMs = TIMEOUT_MS } = this.#history;
    const over = new AbortController();
    const late = Promise.withResolvers<never>();
    const timer = systemClock.setTimer(timeoutMs, () => {
      over.abort(new DOMException(`${name}: it took more than ${timeoutMs} ms`, 'AbortError'));
      late.reject(over.signal.reason);
    });
    try {
      return await Promise.race([(async () => call(over.signal))(), late.promise]);
    } finally {
      timer[Symbol.dispose]();
    }
  }
}

/** Returns who has sent what a task works on. */
export function findStarter({ tenant, context }: TaskRecord): Principal {
  return { tenant, name: tenant, rights: [], ...(context as { principal?: Principal } | undefined)?.principal };
}

/** Whether the task replies to a message again, so that everything after the message goes. */
function isRegenerate({ context }: TaskRecord): boolean {
  return (context as { regenerate?: boolean } | undefined)?.regenerate === true;
}

/** Returns a task whose message has the calls of what it replaces. Its own reply is not among it. */
function withReplaced(task: TaskRecord, messages: Messages): TaskRecord {
  const index = messages.findIndex(({ id }) => id === getId(task.inputs[0]));
  const removed = index < 0 ? [] : messages.slice(index).filter(({ id }) => id !== task.id);
  const inputs = (task.inputs as unknown as Messages).map((message) =>
    withReplacedCalls(message as UIMessage, findReplacedCalls(removed as readonly UIMessage[])),
  );
  return { ...task, inputs: inputs as unknown as TaskRecord['inputs'] };
}

/** Returns a chat with the messages that a task replies to. */
export function withAsked(messages: Messages, task: TaskRecord): Messages {
  if (findAnswers(task) !== undefined) return messages;
  const asked = task.inputs as unknown as Messages;
  const known = new Set(messages.map(getId));
  if (!isRegenerate(task)) return [...messages, ...asked.filter(({ id }) => !known.has(id))];
  const index = messages.findIndex(({ id }) => id === asked[0]?.id);
  const own = messages.filter(({ id }) => id === task.id);
  return [...(index < 0 ? messages : messages.slice(0, index)), ...asked, ...own];
}

/** Makes the change from `old` to `next` to another state of the chat. */
function reapply(current: Messages, old: Messages, next: Messages): Messages {
  const before = new Map(old.map((message) => [message.id, message]));
  const after = new Set(next.map(getId));
  const changed = new Map(
    next.filter((message) => !isDeepStrictEqual(message, before.get(message.id))).map((one) => [one.id, one]),
  );
  const kept = current.filter(({ id }) => after.has(id) || !before.has(id));
  const known = new Set(kept.map(getId));
  const added = [...changed.values()].filter(({ id }) => !known.has(id));
  return [...kept.map((message) => changed.get(message.id) ?? message), ...added];
}

function toOutcome({ token }: SelfManagedContext, error: unknown): TaskOutcome {
  const { reason } = token;
  if (reason !== undefined) return { status: 'cancelled', reason, isComplete: false };
  return { status: 'failed', error: { message: describeError(error), code: 'HISTORY_FAILED' } };
}

/** The reader gets a text that says nothing about the database. */
function unsaved(error: unknown): Pick<TaskOutcome, 'result'> {
  return { result: { unsaved: describeError(error) } };
}

const getId = (message: unknown): string => (message as { id?: string }).id ?? '';

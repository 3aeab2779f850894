import { CallIds, settings } from '@whoa/core/internal';
import { findApproved, type Match, matchRecords } from '../matching-records.ts';
import type { CallRecords } from '../turn/call-records.ts';
import { type AiSdkMessage, type AiSdkPart, type CallSite, findCallSites, getParts } from '../turn/call-sites.ts';
import { asText } from './as-json.ts';
import { endReplies } from './ended-replies.ts';
import { isMasked, type Output, outputFor } from './reported-result.ts';
import { inputObject, safeName, sameOr, wellFormed } from './wire-safe.ts';

/**
 * Makes a history valid again after a run was stopped: every call gets exactly one result, right after it. A call
 * without a result gets one from the records, or one that says its outcome is unknown. So does a stopped call whose
 * result only says that something went wrong. A call stays open only if its approval is answered in the last message
 * and there is no record of it: the loop runs it next. What providers refuse is dropped (results without a call,
 * calls that the provider was running, thinking that nothing follows) or replaced (ids, tool names, split characters).
 *
 * @returns New messages; valid ones are returned unchanged.
 *
 * @example
 * ```ts
 * import { closeOpenCalls, createCallRecords } from '@whoa/ai-sdk';
 * import type { ModelMessage } from 'ai';
 *
 * const calls = createCallRecords();
 * let messages: ModelMessage[] = [{ role: 'user', content: 'Book a table' }];
 * // … your loop runs, and is stopped …
 * await calls.waitForIdle();
 * messages = closeOpenCalls(messages, calls);
 * ```
 */
export function closeOpenCalls<Message extends AiSdkMessage>(
  messages: readonly Message[],
  calls?: CallRecords,
): Message[] {
  return closeCalls(messages, { calls });
}

interface Closing {
  readonly calls: CallRecords | undefined;
  /** Whether calls that the loop runs or refuses next keep their ids, by which a page knows them. */
  readonly keepsNextIds?: boolean;
  /** The messages before a turn, after which nothing waits for a loop. */
  readonly history?: readonly AiSdkMessage[];
  /** Whether a tool's results come from elsewhere, for example from a page. */
  readonly isElsewhere?: (tool: string) => boolean;
}

/** Makes a history valid. */
export function closeCalls<Message extends AiSdkMessage>(messages: readonly Message[], closing: Closing): Message[] {
  const close = settings.safely((given) => {
    if (!settings.isList(given)) throw settings.unexpected('messages', given, 'a list of messages');
    return closeFrom(0, new History(endReplies(wellFormed(given as readonly Message[])), closing));
  });
  return close(messages, 'messages') as Message[];
}

/** A message that ends every reply before it. */
const END: AiSdkMessage = { role: 'user', content: '' };

/** Closes what a turn has added to its history, except for calls that wait for a person or a page. */
export function closeTurn(added: readonly AiSdkMessage[], turn: Closing): AiSdkMessage[] {
  const history = endReplies([...wellFormed(turn.history ?? []), END]).slice(0, -1);
  const all = [...history, ...endReplies([...wellFormed(added), END])];
  return closeFrom(history.length, new History(all, { ...turn, history })).slice(0, -1);
}

/** Returns the messages of a history from an index on, closed. */
function closeFrom(from: number, history: History): AiSdkMessage[] {
  const closed: AiSdkMessage[] = [];
  /** The calls of the last reply that have no result yet. */
  let open = new Set<CallSite>();
  let start = 0;
  const close = (): void => {
    const missing = [...open].flatMap((site) => history.resultFor(site));
    const last = closed.length > start ? closed.at(-1) : undefined;
    if (missing.length > 0 && last?.role === 'tool')
      closed[closed.length - 1] = { ...last, content: [...getParts(last), ...missing] };
    else if (missing.length > 0) closed.push({ role: 'tool', content: missing });
    open = new Set();
  };
  for (const [index, message] of history.messages.entries()) {
    if (index === from) start = closed.length;
    if (message.role === 'tool') {
      const kept = history.keepResults(message, open);
      if (kept !== undefined) closed.push(kept);
      continue;
    }
    close();
    closed.push(history.withNames(message));
    open = new Set(history.getCalls(message));
  }
  close();
  return closed.slice(start);
}

/** A history, and what is known about the calls in it. */
class History {
  readonly messages: readonly AiSdkMessage[];
  readonly #closing: Closing;
  /** Whether calls were recorded when these were requested: empty records may be newer than the history. */
  readonly #isWatched: boolean;
  readonly #calls: ReadonlyMap<AiSdkMessage, CallSite[]>;
  readonly #ids: ReadonlyMap<AiSdkPart, string>;
  readonly #matches: ReadonlyMap<CallSite, Match>;
  /** The call that each result belongs to. */
  readonly #answers: ReadonlyMap<AiSdkPart, CallSite>;
  readonly #results: ReadonlyMap<CallSite, AiSdkPart>;

  constructor(messages: readonly AiSdkMessage[], closing: Closing) {
    const { calls, history, keepsNextIds } = closing;
    const sites = findCallSites(messages);
    this.messages = messages;
    this.#closing = closing;
    this.#calls = Map.groupBy(sites, (site) => site.message);
    this.#answers = findAnswers(messages, this.#calls);
    this.#results = new Map([...this.#answers].map(([part, site]) => [site, part]));
    const next = keepsNextIds ? sites.filter(({ approval }) => approval?.isLast) : [];
    this.#ids = idsFor(messages, sites, (site) => history?.includes(site.message) || isSole(site, next));
    this.#isWatched = history !== undefined || (calls !== undefined && calls.records().length > 0);
    this.#matches = calls === undefined ? new Map<CallSite, Match>() : matchRecords(sites, calls);
    for (const [site, match] of this.#matches) {
      const renamedTo = this.#getId(site);
      if (typeof match === 'object' && renamedTo !== site.toolCallId) calls?.update(match.record.callId, { renamedTo });
    }
  }

  getCalls(message: AiSdkMessage): readonly CallSite[] {
    return this.#calls.get(message) ?? [];
  }

  /** Returns a message with ids, tool names and arguments that every provider accepts. */
  withNames(message: AiSdkMessage): AiSdkMessage {
    const calls = this.getCalls(message);
    const named = getParts(message).map((part) => {
      const site = calls.find((one) => one.part === part || one.approval?.request === part);
      const id = site && { toolCallId: this.#getId(site) };
      if (part.type !== 'tool-call') return changed(part, { ...id });
      // The loop runs an approved call next, with the arguments as they are.
      const input = site && this.#isNext(site) ? part.input : inputObject(part.input);
      return changed(part, { ...(id && { ...id, toolName: safeName(asText(part.toolName)) }), input });
    });
    return withParts(message, named);
  }

  /** Returns a message with the results of open calls only, and marks those as closed. */
  keepResults(message: AiSdkMessage, open: Set<CallSite>): AiSdkMessage | undefined {
    const kept = getParts(message).flatMap((part) => {
      if (part.type !== 'tool-result') return [part];
      const site = this.#answers.get(part);
      return site !== undefined && open.delete(site) ? [this.#told(part, site)] : [];
    });
    return kept.length === 0 ? undefined : withParts(message, kept);
  }

  /**
   * Returns the result of a call that has none next to it. Empty if the last message allows or denies the call and the
   * there is no record of it: the loop runs or refuses it next. After a turn even if it waits for a person or a page.
   */
  resultFor(site: CallSite): AiSdkPart[] {
    const moved = this.#results.get(site);
    if (moved !== undefined) return [this.#told(moved, site)];
    const { approval, tool } = site;
    if (this.#isNext(site)) return [];
    const { history, isElsewhere } = this.#closing;
    if (history && ((approval && !approval.answer) || isElsewhere?.(tool))) return [];
    const output = this.#outputFor(site);
    return [{ type: 'tool-result', toolCallId: this.#getId(site), toolName: safeName(tool), output }];
  }

  /** Whether the last message allows or denies the call, and there is no record of it. */
  #isNext(site: CallSite): boolean {
    return site.approval?.isLast === true && findApproved(site, this.#closing.calls) === undefined;
  }

  #told(result: AiSdkPart, site: CallSite): AiSdkPart {
    const match = this.#matches.get(site) ?? 'none';
    const names = { toolCallId: this.#getId(site), toolName: safeName(asText(result.toolName)) };
    if (!isMasked(result, match)) return changed(result, names);
    const output = this.#outputFor(site);
    return changed(output.value === result.output?.value ? result : { ...result, output }, names);
  }

  #outputFor(site: CallSite): Output {
    const match = this.#matches.get(site) ?? 'none';
    return outputFor(site, { match, calls: this.#closing.calls, isWatched: this.#isWatched });
  }

  #getId(site: CallSite): string {
    return this.#ids.get(site.part)!;
  }
}

/** Returns the same message if its parts are the same. */
function withParts(message: AiSdkMessage, parts: readonly AiSdkPart[]): AiSdkMessage {
  const given = getParts(message);
  const content = sameOr(given, parts);
  return content === given ? message : { ...message, content };
}

/** Returns the same part if these fields are the same. */
function changed(part: AiSdkPart, fields: Partial<AiSdkPart>): AiSdkPart {
  const isSame = Object.entries(fields).every(([name, value]) => part[name as keyof AiSdkPart] === value);
  return isSame ? part : { ...part, ...fields };
}

/** Whether no other of these calls has its id. */
function isSole(site: CallSite, sites: readonly CallSite[]): boolean {
  return sites.includes(site) && sites.filter(({ toolCallId }) => toolCallId === site.toolCallId).length === 1;
}

/** Returns a unique id for every call. Calls that a provider runs keep the provider's id. */
function idsFor(
  messages: readonly AiSdkMessage[],
  sites: readonly CallSite[],
  isKept: (site: CallSite) => boolean,
): Map<AiSdkPart, string> {
  const ids = new CallIds();
  const ours = new Set(sites.map(({ part }) => part));
  for (const part of messages.flatMap(getParts))
    if (part.type === 'tool-call' && !ours.has(part)) ids.take(part.toolCallId);
  const named = sites.map((site) => [site, ids.take(site.toolCallId)] as const);
  return new Map(named.map(([site, id]) => [site.part, isKept(site) ? site.toolCallId : id]));
}

/**
 * Matches each result with a call of the reply before it. A result elsewhere belongs to an earlier call, if only one
 * matches.
 */
function findAnswers(
  messages: readonly AiSdkMessage[],
  calls: ReadonlyMap<AiSdkMessage, CallSite[]>,
): Map<AiSdkPart, CallSite> {
  const answers = new Map<AiSdkPart, CallSite>();
  const open = new Map<string, Set<CallSite>>();
  let reply: readonly CallSite[] = [];
  for (const message of messages) {
    if (message.role !== 'tool') {
      reply = calls.get(message) ?? [];
      for (const site of reply) open.set(site.toolCallId, (open.get(site.toolCallId) ?? new Set()).add(site));
      continue;
    }
    for (const part of getParts(message)) {
      if (part.type !== 'tool-result') continue;
      const id = asText(part.toolCallId);
      const unanswered = open.get(id) ?? new Set();
      const beside = reply.filter(({ toolCallId }) => toolCallId === id);
      const alone = unanswered.size === 1 ? unanswered : [];
      const [site] = beside.length > 0 ? beside.filter((one) => unanswered.has(one)) : alone;
      if (site === undefined) continue;
      answers.set(part, site);
      unanswered.delete(site);
    }
  }
  return answers;
}

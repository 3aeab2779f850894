import { settings } from '@whoa/core/internal';
import { type Match, matchRecords } from '../matching-records.ts';
import type { CallLedger } from '../turn/call-ledger.ts';
import { type AiSdkMessage, type AiSdkPart, type CallSite, callSitesOf, partsOf } from '../turn/call-sites.ts';
import { asText } from './as-json.ts';
import { isMasked, type Output, outputFor } from './told-result.ts';
import { safeName, sameOr, UniqueIds, wellFormed } from './wire-safe.ts';

/**
 * Makes a history valid again after a run was stopped: every call gets exactly one result, right after it. A call
 * without a result gets one from the ledger, or one that says its outcome is unknown. So does a stopped call whose
 * result only says that something went wrong. Results without a call, and second results, are dropped. Duplicate call
 * ids, ids and tool names that providers refuse, and halves of characters are replaced.
 *
 * @returns New messages; valid ones are returned unchanged.
 *
 * @example
 * ```ts
 * import { closeOpenCalls, createCallLedger } from '@whoa/ai-sdk';
 * import type { ModelMessage } from 'ai';
 *
 * const calls = createCallLedger();
 * let messages: ModelMessage[] = [{ role: 'user', content: 'Book a table' }];
 * // … your loop runs, and is stopped …
 * await calls.waitForQuiet();
 * messages = closeOpenCalls(messages, calls);
 * ```
 */
export function closeOpenCalls<Message extends AiSdkMessage>(
  messages: readonly Message[],
  ledger?: CallLedger,
): Message[] {
  return settings.safely((given) => closeCalls(given as readonly Message[], ledger))(messages, 'messages') as Message[];
}

function closeCalls(messages: readonly AiSdkMessage[], ledger: CallLedger | undefined): AiSdkMessage[] {
  if (!settings.isList(messages)) throw settings.unexpected('messages', messages, 'a list of messages');
  const history = new History(wellFormed(messages), ledger);
  const closed: AiSdkMessage[] = [];
  /** The calls of the last reply that have no result yet, and where its results start. */
  let open = new Set<CallSite>();
  const close = (): void => {
    const missing = [...open].flatMap((site) => history.resultFor(site));
    if (missing.length > 0) addResults(closed, missing);
    open = new Set();
  };
  for (const message of history.messages) {
    if (message.role === 'tool') {
      const kept = history.keepResults(message, open);
      if (kept !== undefined) closed.push(kept);
      continue;
    }
    close();
    closed.push(history.withNames(message));
    open = new Set(history.callsOf(message));
  }
  close();
  return closed;
}

/** Adds results to the last message if it holds results, otherwise in a new message. */
function addResults(messages: AiSdkMessage[], results: readonly AiSdkPart[]): void {
  const last = messages.at(-1);
  if (last?.role !== 'tool') messages.push({ role: 'tool', content: results });
  else messages[messages.length - 1] = { ...last, content: [...partsOf(last), ...results] };
}

/** A history, and what is known about the calls in it. */
class History {
  readonly messages: readonly AiSdkMessage[];
  readonly #ledger: CallLedger | undefined;
  /** Whether the ledger existed when these calls were requested: an empty one may be newer than the history. */
  readonly #isWatched: boolean;
  readonly #calls: ReadonlyMap<AiSdkMessage, CallSite[]>;
  readonly #ids: ReadonlyMap<AiSdkPart, string>;
  readonly #matches: ReadonlyMap<CallSite, Match>;
  /** The call that each result belongs to. */
  readonly #answers: ReadonlyMap<AiSdkPart, CallSite>;
  readonly #results: ReadonlyMap<CallSite, AiSdkPart>;
  readonly #approved: ReadonlySet<unknown>;

  constructor(messages: readonly AiSdkMessage[], ledger: CallLedger | undefined) {
    const sites = callSitesOf(messages);
    this.messages = messages;
    this.#ledger = ledger;
    this.#calls = Map.groupBy(sites, (site) => site.message);
    this.#ids = idsFor(messages, sites);
    this.#answers = answersIn(messages, this.#calls);
    this.#results = new Map([...this.#answers].map(([part, site]) => [site, part]));
    this.#isWatched = ledger !== undefined && ledger.records().length > 0;
    this.#matches = ledger === undefined ? new Map<CallSite, Match>() : matchRecords(sites, ledger);
    for (const [site, match] of this.#matches) {
      const renamedTo = this.#idOf(site);
      if (typeof match === 'object' && renamedTo !== site.toolCallId)
        ledger?.update(match.record.callId, { renamedTo });
    }
    const parts = messages.flatMap(partsOf);
    const given = parts.flatMap(({ type, approvalId }) => (type === 'tool-approval-response' ? [approvalId] : []));
    this.#approved = new Set(given);
  }

  callsOf(message: AiSdkMessage): readonly CallSite[] {
    return this.#calls.get(message) ?? [];
  }

  /** Returns a message with ids and tool names that every provider accepts. */
  withNames(message: AiSdkMessage): AiSdkMessage {
    const calls = this.callsOf(message);
    if (calls.length === 0) return message;
    const parts = partsOf(message);
    const named = parts.map((part) => {
      const id = this.#ids.get(part);
      if (id !== undefined) return renamed(part, { toolCallId: id, toolName: safeName(asText(part.toolName)) });
      const asked = part.type === 'tool-approval-request' && calls.find((site) => site.toolCallId === part.toolCallId);
      return asked ? renamed(part, { toolCallId: this.#idOf(asked) }) : part;
    });
    const content = sameOr(parts, named);
    return content === parts ? message : { ...message, content };
  }

  /**
   * Returns a message of results without those that belong to none of the open calls, and marks the others as closed.
   */
  keepResults(message: AiSdkMessage, open: Set<CallSite>): AiSdkMessage | undefined {
    const parts = partsOf(message);
    const kept = parts.flatMap((part) => {
      if (part.type !== 'tool-result') return [part];
      const site = this.#answers.get(part);
      return site !== undefined && open.delete(site) ? [this.#told(part, site)] : [];
    });
    if (kept.length === 0) return undefined;
    const content = sameOr(parts, kept);
    return content === parts ? message : { ...message, content };
  }

  /**
   * Returns the result of a call that has none beside it. Empty if the call was approved: the loop runs or refuses it
   * next.
   */
  resultFor(site: CallSite): AiSdkPart[] {
    const moved = this.#results.get(site);
    if (moved !== undefined) return [this.#told(moved, site)];
    const request = partsOf(site.message).find(
      ({ type, toolCallId }) => type === 'tool-approval-request' && toolCallId === site.toolCallId,
    );
    if (request !== undefined && this.#approved.has(request.approvalId)) return [];
    const output = this.#outputFor(site);
    return [{ type: 'tool-result', toolCallId: this.#idOf(site), toolName: safeName(site.tool), output }];
  }

  #told(result: AiSdkPart, site: CallSite): AiSdkPart {
    const match = this.#matches.get(site) ?? 'none';
    const names = { toolCallId: this.#idOf(site), toolName: safeName(asText(result.toolName)) };
    if (!isMasked(result, match)) return renamed(result, names);
    const output = this.#outputFor(site);
    return renamed(output.value === result.output?.value ? result : { ...result, output }, names);
  }

  #outputFor(site: CallSite): Output {
    const match = this.#matches.get(site) ?? 'none';
    return outputFor(site, { match, ledger: this.#ledger, isWatched: this.#isWatched });
  }

  #idOf(site: CallSite): string {
    return this.#ids.get(site.part)!;
  }
}

function renamed(part: AiSdkPart, names: { readonly toolCallId: string; readonly toolName?: string }): AiSdkPart {
  const isSame = Object.entries(names).every(([name, value]) => part[name as 'toolCallId'] === value);
  return isSame ? part : { ...part, ...names };
}

/** Returns a unique id for every call. Calls that a provider runs keep the provider's id. */
function idsFor(messages: readonly AiSdkMessage[], sites: readonly CallSite[]): Map<AiSdkPart, string> {
  const ids = new UniqueIds();
  const ours = new Set(sites.map(({ part }) => part));
  for (const part of messages.flatMap(partsOf))
    if (part.type === 'tool-call' && !ours.has(part)) ids.reserve(asText(part.toolCallId));
  return new Map(sites.map(({ part, toolCallId }) => [part, ids.take(toolCallId)]));
}

/**
 * Matches each result with a call of the reply before it. A result elsewhere belongs to an earlier call, if only one
 * matches.
 */
function answersIn(
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
    for (const part of partsOf(message)) {
      if (part.type !== 'tool-result') continue;
      const id = asText(part.toolCallId);
      const unanswered = open.get(id) ?? new Set();
      const beside = reply.filter(({ toolCallId }) => toolCallId === id);
      const site =
        beside.length > 0
          ? beside.find((one) => unanswered.has(one))
          : unanswered.size === 1
            ? [...unanswered][0]
            : undefined;
      if (site === undefined) continue;
      answers.set(part, site);
      unanswered.delete(site);
    }
  }
  return answers;
}

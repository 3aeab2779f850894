import type { UIMessage } from 'ai';
import { ALL } from '../browser.ts';
import { toText } from '../scenarios/harness.ts';
import type { Given } from './orders.ts';

interface Ended {
  readonly messages: readonly UIMessage[];
  readonly effects: readonly string[];
  readonly given: readonly Given[];
}

/** The user of the chat that is judged. Others have chats of the same name. */
export const OWNER = 'ada';

/** A reply to one of these ends only when it is released, or stopped. */
const HELD = /^(hold|stall|call look) /;

/** Returns what was lost, what took effect twice, and what was stopped that was not meant. */
export function judge({ messages, effects, given: all }: Ended): readonly string[] {
  const given = all.filter(({ user }) => user === OWNER);
  // The tools of others count too.
  const yes = all.filter(({ kind }) => kind === 'yes').length;
  const paid = effects.filter((effect) => effect === 'pay started').length;
  return [
    ...given.flatMap((one) => judgeOne(one, { messages, given })),
    ...(paid > yes ? [`repeated: ${paid} payments, ${yes} yeses`] : []),
    ...messages.flatMap((message) => (message.role === 'user' ? judgeReply(message, { messages, given }) : [])),
  ];
}

interface Context {
  readonly messages: readonly UIMessage[];
  readonly given: readonly Given[];
}

function judgeOne(one: Given, { messages, given }: Context): readonly string[] {
  const { kind, turn, call, orders } = one;
  const lost = orders.filter(({ end, mayBeLost }) => end === 'open' && !mayBeLost);
  const found = lost.map(({ id }) => `lost: the server neither took nor refused ${kind} ${id} of '${turn}'`);
  // If the server took one of its commands, it has effect.
  const isTaken = orders.some(({ end }) => end === 'acknowledged');
  // Commands of one tab keep their order.
  const later = given.filter(({ at, page }) => at > one.at || page !== one.page);
  const regenerates = later.filter((other) => other.kind === 'regenerate');
  if (kind === 'send') {
    const count = messages.filter((message) => message.role === 'user' && toText(message) === turn).length;
    // Another reply to an earlier message removes what was said after it.
    const mayBeGone =
      given.some((other) => other.kind === 'rollback' && other.turns.has(turn)) ||
      regenerates.some((other) => other.turn !== turn);
    if (count === 0 && isTaken && !mayBeGone) found.push(`lost: the message '${turn}'`);
    if (count > 1) found.push(`repeated: ${count} times the message '${turn}'`);
  }
  const isAnotherReply = regenerates.some((other) => other.turn === turn);
  if (kind === 'stop' && isTaken && !isAnotherReply && HELD.test(turn) && repliesTo(messages, turn).some(isWhole))
    found.push(`lost: the stop of '${turn}'`);
  if (call !== undefined && isTaken) found.push(...judgeAnswer(messages, call));
  return found;
}

function judgeAnswer(messages: readonly UIMessage[], id: string): readonly string[] {
  const parts = messages.flatMap((message) => message.parts) as { toolCallId?: string; state?: string }[];
  const part = parts.findLast(({ toolCallId }) => toolCallId === id);
  const isOpen = part?.state === 'approval-requested' || part?.state === 'input-available';
  return isOpen ? [`lost: the answer to ${id}, which is '${part.state}'`] : [];
}

/** Only a stop of its own turn ends a reply as a user's stop does, or leaves the last message without a whole one. */
function judgeReply(message: UIMessage, { messages, given }: Context): readonly string[] {
  const text = toText(message);
  const replies = repliesTo(messages, text);
  const ids = new Set(replies.map(({ id }) => id.replace(/-stop$/, '')));
  const isMeant = given.some(
    ({ kind, turns, orders }) =>
      (kind === 'stop' || kind === 'rollback') &&
      (turns.has(text) || orders.some(({ messageId }) => messageId !== undefined && ids.has(messageId))),
  );
  const own = given.find(({ kind, turn }) => kind === 'send' && turn === text);
  if (isMeant || own === undefined) return [];
  const reports = replies.flatMap(({ parts }) => parts.filter(({ type }) => type === 'data-stop-report'));
  const isByUser = reports.some((part) => JSON.stringify(part).includes('"kind":"user"'));
  const isLast = message === messages.findLast(({ role }) => role === 'user');
  const isCut = isLast && (replies.length === 0 || reports.length > 0) && !isFreed(own, { messages, given });
  return isByUser || isCut ? [`stopped, and not meant: '${text}'`] : [];
}

/** Whether a message that came after this one, and replaced its reply, was rolled back since. */
function isFreed({ at, page }: Given, { messages, given }: Context): boolean {
  const removed = given.filter((other) => {
    const isLater = other.at > at || other.page !== page;
    return other.kind === 'send' && isLater && !messages.some((message) => toText(message) === other.turn);
  });
  return removed.some(({ turn }) => given.some(({ kind, turns }) => kind === 'rollback' && turns.has(turn)));
}

/** It went on without a stop. One whose process was ended during its call waits for nothing any more. */
const isWhole = (reply: UIMessage): boolean =>
  toText(reply).endsWith(ALL) && !JSON.stringify(reply).includes('the process that ran it stopped before it ended');

/** The replies to a message. */
function repliesTo(messages: readonly UIMessage[], text: string): readonly UIMessage[] {
  const index = messages.findLastIndex((message) => toText(message) === text);
  const end = messages.findIndex(({ role }, i) => i > index && role === 'user');
  return index < 0 ? [] : messages.slice(index + 1, end < 0 ? undefined : end);
}

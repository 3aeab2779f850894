/**
 * What a newer message does to an active run.
 *
 * - `replace`: the run is cancelled; the message is next, and all waiting messages are dropped.
 * - `queue`: the message waits in the conversation queue.
 * - `merge`: like `queue`, but if another message already waits last, one run answers both.
 * - `steer`: the message is passed to the run, which reads it at the next boundary.
 * - `reject`: the message is rejected.
 */
export type Policy = 'replace' | 'queue' | 'merge' | 'steer' | 'reject';

/** The state of one conversation. Messages are referred to by id. */
export interface ConversationState {
  /** The messages that the active run answers. There is at most one active run. */
  readonly running?: Batch & { readonly stopping: StopKind | undefined };
  /** Messages passed to the active run that it has not read yet. */
  readonly steered: readonly string[];
  /** The conversation queue. Each entry becomes one run. */
  readonly waiting: readonly Batch[];
  /** Messages held back briefly, in case more follow. */
  readonly debouncing?: DebouncedMessages;
  /** Ids that are not processed again. */
  readonly seen: readonly string[];
}

/** Messages that one run answers. They have the same context: no one's data ever reaches another's run. */
interface Batch {
  readonly ids: readonly string[];
  readonly context: string;
}

interface DebouncedMessages extends Batch {
  readonly policy: Policy;
}

type StopKind = 'superseded' | 'user';

export type ConversationInput =
  | {
      readonly type: 'message';
      readonly id: string;
      readonly policy: Policy;
      readonly debounceMs: number;
      /** Equal for messages whose contexts are. */
      readonly context: string;
    }
  /** The time for more messages is over. */
  | { readonly type: 'gathered' }
  | { readonly type: 'steer-delivered'; readonly id: string }
  | { readonly type: 'run-ended' }
  /** Stop the run and drop the waiting messages. */
  | { readonly type: 'cancel' }
  /** Withdraw one message. */
  | { readonly type: 'withdraw'; readonly id: string };

export type ConversationEffect =
  | { readonly type: 'start'; readonly ids: readonly string[] }
  /** A newer message replaces the run. Callers that cancel stop the run themselves and get the receipt. */
  | { readonly type: 'stop' }
  | { readonly type: 'steer'; readonly id: string }
  /** Call back with `gathered` after this long; a newer request replaces an older one. */
  | { readonly type: 'gather'; readonly ms: number }
  | { readonly type: 'answer'; readonly id: string; readonly status: EarlyStatus };

/** The status of a message that got no run. */
export type EarlyStatus = 'duplicate' | 'rejected' | 'superseded' | 'merged' | 'steered' | 'cancelled';

/**
 * Describes, for the sender, what happened to a message that got no run.
 *
 * @returns The text; empty when there is nothing to say.
 */
export function describeEarlyStatus(status: EarlyStatus): string {
  if (status === 'rejected') return 'Still busy with an earlier message; please send this one again later.';
  return status === 'cancelled' ? 'Stopped. Nothing was done.' : '';
}

export interface ConversationTransition {
  readonly state: ConversationState;
  readonly effects: readonly ConversationEffect[];
}

/** How many ids are remembered to detect redelivered messages. */
export const MAX_SEEN_MESSAGES = 1_000;
/** How many messages may wait in a conversation. */
export const MAX_WAITING_MESSAGES = 100;
/** How many messages one run may answer. */
export const MAX_MERGED_MESSAGES = 1_000;

export const NEW_CONVERSATION: ConversationState = { steered: [], waiting: [], seen: [] };

/** Decides what a message, an end or a cancel does to a conversation. Pure. All such decisions belong here. */
export function reduceConversation(state: ConversationState, input: ConversationInput): ConversationTransition {
  switch (input.type) {
    case 'message':
      return receive(state, input);
    case 'gathered':
      return state.debouncing === undefined ? { state, effects: [] } : admitDebounced(state, state.debouncing);
    case 'steer-delivered': {
      if (!state.steered.includes(input.id)) return { state, effects: [] };
      const steered = state.steered.filter((id) => id !== input.id);
      return { state: { ...state, steered }, effects: answers([input.id], 'steered') };
    }
    case 'run-ended':
      return endRun(state);
    case 'cancel':
      return cancel(state);
    case 'withdraw':
      return withdraw(state, input.id);
  }
}

function receive(
  state: ConversationState,
  message: Extract<ConversationInput, { type: 'message' }>,
): ConversationTransition {
  const { id, policy, debounceMs, context } = message;
  const { debouncing: held } = state;
  if (state.seen.includes(id)) return { state, effects: answers([id], 'duplicate') };
  // Check this before joining: a rejected message must not take those with it that are held back.
  if (policy === 'reject' && debounceMs === 0 && state.running !== undefined)
    return { state, effects: answers([id], 'rejected') };
  if (held !== undefined && held.context !== context) {
    const first = admitDebounced(state, held);
    const next = receive(first.state, message);
    return { state: next.state, effects: [...first.effects, ...next.effects] };
  }
  const seen = [...state.seen, id].slice(-MAX_SEEN_MESSAGES);
  const debouncing = { ids: [...(held?.ids ?? []), id], policy, context };
  if (debounceMs > 0) return { state: { ...state, seen, debouncing }, effects: [{ type: 'gather', ms: debounceMs }] };
  return admitDebounced({ ...state, seen }, debouncing);
}

/** Processes gathered messages as one. */
function admitDebounced(
  { debouncing: _, ...state }: ConversationState,
  { policy, ...batch }: DebouncedMessages,
): ConversationTransition {
  const { running, waiting } = state;
  const { ids } = batch;
  if (running === undefined) return start(state, batch);
  if (policy === 'replace') return supersede(state, batch);
  if (policy === 'steer' && running.stopping === undefined && running.context === batch.context) {
    const effects = ids.map((id): ConversationEffect => ({ type: 'steer', id }));
    return { state: { ...state, steered: [...state.steered, ...ids] }, effects };
  }
  if (policy === 'reject' || waiting.length >= MAX_WAITING_MESSAGES) {
    // A refused message was not processed, so it may be sent again.
    const seen = state.seen.filter((id) => !ids.includes(id));
    return { state: { ...state, seen }, effects: answers(ids, 'rejected') };
  }
  const last = waiting.at(-1);
  const isMerged =
    policy === 'merge' && last?.context === batch.context && last.ids.length + ids.length <= MAX_MERGED_MESSAGES;
  const queue = isMerged ? [...waiting.slice(0, -1), { ...last, ids: [...last.ids, ...ids] }] : [...waiting, batch];
  return { state: { ...state, waiting: queue }, effects: [] };
}

/** One run answers several messages: the last of them gets the reply. */
function start(state: ConversationState, { ids, context }: Batch): ConversationTransition {
  return {
    state: { ...state, running: { ids, context, stopping: undefined } },
    effects: [{ type: 'start', ids }, ...answers(ids.slice(0, -1), 'merged')],
  };
}

function supersede(state: ConversationState, batch: Batch): ConversationTransition {
  const isStopping = state.running?.stopping !== undefined;
  return {
    state: stopping({ ...state, waiting: [batch], steered: [] }, 'superseded'),
    effects: [...answers(waitingIds(state), 'superseded'), ...(isStopping ? [] : [{ type: 'stop' as const }])],
  };
}

function endRun({ running, ...state }: ConversationState): ConversationTransition {
  // Steered messages that the run never read are next. They have its context.
  const unread = state.steered.length === 0 ? [] : [{ ids: state.steered, context: running!.context }];
  const [next, ...waiting] = [...unread, ...state.waiting];
  return next === undefined ? { state, effects: [] } : start({ ...state, steered: [], waiting }, next);
}

function waitingIds({ debouncing, waiting, steered }: ConversationState): string[] {
  return [...(debouncing?.ids ?? []), ...waiting.flatMap(({ ids }) => ids), ...steered];
}

function cancel(state: ConversationState): ConversationTransition {
  const { debouncing: _, ...rest } = state;
  const effects = answers(waitingIds(state), 'cancelled');
  return { state: stopping({ ...rest, waiting: [], steered: [] }, 'user'), effects };
}

/** Marks the active run as stopping. The first kind is kept. */
function stopping(state: ConversationState, kind: StopKind): ConversationState {
  const { running } = state;
  return running === undefined ? state : { ...state, running: { ...running, stopping: running.stopping ?? kind } };
}

function withdraw(state: ConversationState, id: string): ConversationTransition {
  if (state.running?.ids.at(-1) === id) return { state: stopping(state, 'user'), effects: [] };
  const { debouncing, ...rest } = state;
  const without = <One extends Batch>(batch: One): One[] => {
    const ids = batch.ids.filter((one) => one !== id);
    return ids.length === 0 ? [] : [{ ...batch, ids }];
  };
  const [held] = debouncing === undefined ? [] : without(debouncing);
  const steered = state.steered.filter((one) => one !== id);
  return {
    state: { ...rest, waiting: state.waiting.flatMap(without), steered, ...(held && { debouncing: held }) },
    effects: waitingIds(state).includes(id) ? answers([id], 'cancelled') : [],
  };
}

function answers(ids: readonly string[], status: EarlyStatus): ConversationEffect[] {
  return ids.map((id) => ({ type: 'answer', id, status }));
}

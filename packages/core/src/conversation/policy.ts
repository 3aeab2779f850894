/**
 * What a newer message does to an active run.
 *
 * - `replace`: the run is cancelled; the message is next, and all waiting messages are dropped.
 * - `queue`: the message waits in the conversation queue.
 * - `steer`: the message is passed to the run, which reads it at the next boundary.
 * - `reject`: the message is refused.
 */
export type Policy = 'replace' | 'queue' | 'steer' | 'reject';

/** The state of one conversation. Plain data, so a store can keep it. Messages are referred to by id. */
export interface ConversationState {
  /** The messages that the active run answers. There is at most one active run. */
  readonly running?: { readonly ids: readonly string[]; readonly stopping: StopKind | undefined };
  /** Messages passed to the active run that it has not read yet. */
  readonly steered: readonly string[];
  /** The conversation queue. Each entry becomes one run. */
  readonly waiting: readonly (readonly string[])[];
  /** Messages held back briefly, in case more follow. */
  readonly gathering?: Gathering;
  /** Ids that are not processed again. */
  readonly seen: readonly string[];
}

interface Gathering {
  readonly ids: readonly string[];
  readonly policy: Policy;
}

type StopKind = 'superseded' | 'user';

export type ConversationInput =
  | { readonly type: 'message'; readonly id: string; readonly policy: Policy; readonly debounceMs: number }
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

export const NEW_CONVERSATION: ConversationState = { steered: [], waiting: [], seen: [] };

/** Decides what a message, an end or a cancel does to a conversation. Pure. All such decisions belong here. */
export function reduceConversation(state: ConversationState, input: ConversationInput): ConversationTransition {
  switch (input.type) {
    case 'message':
      return receive(state, input);
    case 'gathered':
      return state.gathering === undefined ? { state, effects: [] } : admitGathered(state, state.gathering);
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
  const { id, policy, debounceMs } = message;
  if (state.seen.includes(id)) return { state, effects: answers([id], 'duplicate') };
  const seen = [...state.seen, id].slice(-MAX_SEEN_MESSAGES);
  const gathering = { ids: [...(state.gathering?.ids ?? []), id], policy };
  if (debounceMs > 0) return { state: { ...state, seen, gathering }, effects: [{ type: 'gather', ms: debounceMs }] };
  return admitGathered({ ...state, seen, gathering }, gathering);
}

/** Processes gathered messages as one. */
function admitGathered({ gathering: _, ...state }: ConversationState, gathered: Gathering): ConversationTransition {
  return admit(state, gathered.ids, gathered.policy);
}

function admit(state: ConversationState, ids: readonly string[], policy: Policy): ConversationTransition {
  const { running, waiting } = state;
  if (running === undefined) return start(state, ids);
  if (policy === 'replace') return supersede(state, ids);
  if (policy === 'steer' && running.stopping === undefined) {
    const effects = ids.map((id): ConversationEffect => ({ type: 'steer', id }));
    return { state: { ...state, steered: [...state.steered, ...ids] }, effects };
  }
  if (policy === 'reject' || waiting.length >= MAX_WAITING_MESSAGES) {
    // A refused message was not processed, so it may be sent again.
    const seen = state.seen.filter((id) => !ids.includes(id));
    return { state: { ...state, seen }, effects: answers(ids, 'rejected') };
  }
  return { state: { ...state, waiting: [...waiting, ids] }, effects: [] };
}

/** One run answers several messages: the last of them gets the reply. */
function start(state: ConversationState, ids: readonly string[]): ConversationTransition {
  return {
    state: { ...state, running: { ids, stopping: undefined } },
    effects: [{ type: 'start', ids }, ...answers(ids.slice(0, -1), 'merged')],
  };
}

function supersede(state: ConversationState, ids: readonly string[]): ConversationTransition {
  const dropped = [...state.waiting.flat(), ...state.steered];
  const isStopping = state.running?.stopping !== undefined;
  const next = stopping({ ...state, waiting: [ids], steered: [] }, 'superseded');
  return {
    state: next,
    effects: [...answers(dropped, 'superseded'), ...(isStopping ? [] : [{ type: 'stop' as const }])],
  };
}

function endRun({ running: _, ...state }: ConversationState): ConversationTransition {
  // Steered messages that the run never read are next.
  const [ids, ...waiting] = state.steered.length > 0 ? [state.steered, ...state.waiting] : state.waiting;
  return ids === undefined ? { state, effects: [] } : start({ ...state, steered: [], waiting }, ids);
}

function cancel({ gathering, ...state }: ConversationState): ConversationTransition {
  const dropped = [...(gathering?.ids ?? []), ...state.waiting.flat(), ...state.steered];
  return { state: stopping({ ...state, waiting: [], steered: [] }, 'user'), effects: answers(dropped, 'cancelled') };
}

/** Marks the active run as stopping. The first kind is kept. */
function stopping(state: ConversationState, kind: StopKind): ConversationState {
  const { running } = state;
  return running === undefined ? state : { ...state, running: { ...running, stopping: running.stopping ?? kind } };
}

function withdraw(state: ConversationState, id: string): ConversationTransition {
  if (state.running?.ids.at(-1) === id) return { state: stopping(state, 'user'), effects: [] };
  const { gathering, ...rest } = state;
  const isOther = (one: string): boolean => one !== id;
  const waiting = state.waiting.map((ids) => ids.filter(isOther)).filter((ids) => ids.length > 0);
  const steered = state.steered.filter(isOther);
  const ids = gathering?.ids.filter(isOther) ?? [];
  const isFound = [...state.waiting.flat(), ...state.steered, ...(gathering?.ids ?? [])].includes(id);
  return {
    state: { ...rest, waiting, steered, ...(gathering && ids.length > 0 && { gathering: { ...gathering, ids } }) },
    effects: isFound ? answers([id], 'cancelled') : [],
  };
}

function answers(ids: readonly string[], status: EarlyStatus): ConversationEffect[] {
  return ids.map((id) => ({ type: 'answer', id, status }));
}

import type { TurnEnd } from '../../adapter.ts';
import { TurnLog } from '../../turn-log.ts';
import type { Frame } from '../frames.ts';

/** Follows the turns of all sessions of a connection by what is on the wire. */
export class SessionLog {
  /** The last turn of each session: what comes late belongs to it. */
  readonly #turns = new Map<string, TurnLog>();
  readonly #prompts = new Map<unknown, TurnLog>();
  readonly #ids = new Map<TurnLog, unknown>();
  readonly #starting = new Map<string, TurnLog>();

  /** A turn whose prompt is about to be sent. */
  expect(sessionId: string): TurnLog {
    const turn = new TurnLog();
    this.#starting.set(sessionId, turn);
    return turn;
  }

  findTurn(sessionId: string): TurnLog | undefined {
    return this.#turns.get(sessionId);
  }

  requestId(turn: TurnLog): unknown {
    return this.#ids.get(turn);
  }

  sent({ id, method, params }: Frame): void {
    if (method !== 'session/prompt') return;
    const sessionId = String(params?.['sessionId']);
    const turn = this.#starting.get(sessionId);
    if (turn === undefined) return;
    this.#starting.delete(sessionId);
    this.#turns.set(sessionId, turn);
    this.#prompts.set(id, turn);
    this.#ids.set(turn, id);
  }

  received(frame: Frame): void {
    const { id, method, params } = frame;
    if (method === 'session/update') {
      const turn = this.#turns.get(String(params?.['sessionId']));
      if (turn !== undefined) recordUpdate(turn, params?.['update'] as Record<string, unknown>);
    } else if (method === undefined) {
      const turn = this.#prompts.get(id);
      if (turn !== undefined) turn.record({ what: 'end', end: toTurnEnd(frame) });
    }
  }

  gone(why: string): void {
    for (const turn of this.#turns.values()) turn.end('gone', why);
  }
}

function toTurnEnd({ error, result }: Frame): TurnEnd {
  if (error !== undefined) return { kind: 'error', detail: `error ${error.code}: ${error.message}` };
  const reason = String(result?.['stopReason']);
  return { kind: reason === 'cancelled' ? 'cancelled' : 'completed', detail: `stopReason ${reason}` };
}

/** Kinds of updates that belong to a session rather than to a turn. */
const OF_THE_SESSION = new Set([
  'available_commands_update',
  'current_mode_update',
  'config_option_update',
  'session_info_update',
  'usage_update',
]);

function recordUpdate(turn: TurnLog, update: Readonly<Record<string, unknown>>): void {
  const kind = String(update['sessionUpdate']);
  if (OF_THE_SESSION.has(kind)) return;
  if (kind === 'agent_message_chunk') {
    const { text } = update['content'] as { readonly text?: string };
    turn.record({ what: 'text', text: text ?? '' });
  } else if (kind === 'tool_call' || kind === 'tool_call_update') {
    const id = String(update['toolCallId']);
    const status = (update['status'] as string | null | undefined) ?? (kind === 'tool_call' ? 'pending' : undefined);
    if (status === undefined) turn.record({ what: 'other', detail: kind });
    else {
      const isOpen = status !== 'completed' && status !== 'failed';
      turn.record({ what: 'call', id, isOpen, detail: status });
    }
  } else turn.record({ what: 'other', detail: kind });
}

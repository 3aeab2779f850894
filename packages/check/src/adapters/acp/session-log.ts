import type { Turn, TurnEnd } from '../../adapter.ts';
import { TurnLog } from '../../turn-log.ts';
import type { Frame } from '../frames.ts';

interface SentPrompt {
  readonly sessionId: string;
  readonly turn: TurnLog;
  /** The id of its request, once that is on the wire. */
  id?: unknown;
}

/** Follows the turns of all sessions of a connection by what is on the wire. */
export class SessionLog {
  readonly #prompts: SentPrompt[] = [];

  /** A turn whose prompt is about to be sent. */
  expect(sessionId: string): TurnLog {
    const turn = new TurnLog();
    this.#prompts.push({ sessionId, turn });
    return turn;
  }

  /** The last turn of a session: what comes late belongs to it. */
  findTurn(sessionId: unknown): TurnLog | undefined {
    return this.#prompts.findLast((one) => one.sessionId === sessionId && one.id !== undefined)?.turn;
  }

  requestId(turn: Turn): unknown {
    return this.#prompts.find((one) => one.turn === turn)?.id;
  }

  sent({ id, method, params }: Frame): void {
    if (method !== 'session/prompt') return;
    const prompt = this.#prompts.find((one) => one.sessionId === params?.['sessionId'] && one.id === undefined);
    if (prompt !== undefined) prompt.id = id;
  }

  received(frame: Frame): void {
    const { id, method, params } = frame;
    if (method === 'session/update') {
      const turn = this.findTurn(params?.['sessionId']);
      if (turn !== undefined) recordUpdate(turn, params?.['update'] as Record<string, unknown>);
    } else if (method === undefined && id !== undefined) {
      const turn = this.#prompts.find((one) => one.id === id)?.turn;
      turn?.record({ what: 'end', end: toTurnEnd(frame) });
    }
  }

  gone(why: string): void {
    for (const { turn } of this.#prompts) if (!turn.hasEnded) turn.end('gone', why);
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
  const status = (update['status'] as string | null | undefined) ?? (kind === 'tool_call' ? 'pending' : undefined);
  if (kind === 'agent_message_chunk') {
    const { text } = update['content'] as { readonly text?: string };
    turn.record({ what: 'text', text: text ?? '' });
  } else if ((kind === 'tool_call' || kind === 'tool_call_update') && status !== undefined) {
    const isOpen = status !== 'completed' && status !== 'failed';
    turn.record({ what: 'call', id: String(update['toolCallId']), isOpen, detail: status });
  } else turn.record({ what: 'other', detail: kind });
}

import {
  type Fault,
  type Frame,
  isFault,
  type ScriptedResponse,
  type ScriptedResponsePart,
  toArguments,
  toChunks,
  toFinish,
  USAGE,
} from '../script.ts';
import type { ProviderRefusal } from '../strict/strict.ts';
import { validateChat } from '../strict/strict-chat.ts';
import { type FrameContext, frame, type Wire } from './wire.ts';

/** The stream format of OpenAI Chat Completions. */
export const chatWire: Wire = {
  format: 'chat',
  path: '/chat/completions',
  frames,
  failure: openAiFailure,
  overloaded: () => frame({ error: { message: 'The server is overloaded', type: 'server_error', code: 'overloaded' } }),
  validate: validateChat,
};

/** OpenAI's errors look the same in both of its formats. */
export function openAiFailure(status: number, { message, param = '' }: Omit<ProviderRefusal, 'rule'>): unknown {
  const type = status === 400 ? 'invalid_request_error' : status === 429 ? 'rate_limit_error' : 'server_error';
  return { error: { message, type, param: param === '' ? null : param, code: null } };
}

const FINISH_REASONS = { stop: 'stop', length: 'length', 'tool-use': 'tool_calls' };

function* frames(answer: ScriptedResponse, { id, model }: FrameContext): Generator<Frame | Fault> {
  const { parts = [], usage = USAGE } = answer;
  const base = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1_700_000_000, model };
  const chunk = (delta: unknown, words?: string): Frame =>
    frame({ ...base, choices: [{ index: 0, delta, finish_reason: null }] }, words === undefined ? {} : { words });
  yield chunk({ role: 'assistant', content: '' });
  let calls = 0;
  for (const part of parts) {
    if (isFault(part)) yield part;
    else yield* deltas(part, { chunk, id, index: 'call' in part ? calls++ : 0 });
  }
  const finish_reason = FINISH_REASONS[toFinish(answer)];
  yield frame({ ...base, choices: [{ index: 0, delta: {}, finish_reason }] });
  const { inputTokens, outputTokens } = usage;
  const counts = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  yield frame({ ...base, choices: [], usage: counts });
  yield frame('[DONE]');
}

interface Position {
  readonly chunk: (delta: unknown, words?: string) => Frame;
  readonly id: string;
  readonly index: number;
}

function* deltas(part: Exclude<ScriptedResponsePart, Fault>, { chunk, id, index }: Position): Generator<Frame | Fault> {
  if ('redacted' in part || 'search' in part) return;
  let chunks: ReturnType<typeof toChunks>;
  let toDelta: (words: string) => unknown;
  if ('call' in part) {
    const name = { name: part.call, arguments: '' };
    yield chunk({ tool_calls: [{ index, id: part.id ?? `call_${id}_${index}`, type: 'function', function: name }] });
    chunks = toChunks(toArguments(part));
    toDelta = (words) => ({ tool_calls: [{ index, function: { arguments: words } }] });
  } else {
    // OpenAI does not send thinking here; compatible servers stream it like this.
    chunks = toChunks('text' in part ? part.text : part.thinking);
    toDelta = (words) => ('text' in part ? { content: words } : { reasoning_content: words });
  }
  for (const words of chunks) yield typeof words === 'string' ? chunk(toDelta(words), words) : words;
}

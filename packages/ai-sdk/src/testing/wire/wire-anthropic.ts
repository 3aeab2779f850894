import {
  type Fault,
  type Frame,
  isFault,
  joinWords,
  type ScriptedResponse,
  type ScriptedResponsePart,
  toArguments,
  toChunks,
  toFinish,
  USAGE,
} from '../script.ts';
import { validateAnthropic } from '../strict/strict-anthropic.ts';
import { type FrameContext, frame, type Wire } from './wire.ts';

/** The stream format of Anthropic Messages. */
export const anthropicWire: Wire = {
  format: 'anthropic',
  path: '/messages',
  frames,
  failure: (status, { message }) => ({ type: 'error', error: { type: errorType(status), message } }),
  overloaded: () => event({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } }),
  validate: validateAnthropic,
};

type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

function event(data: Event, words?: string): Frame {
  return frame(data, { event: data.type, ...(words !== undefined && { words }) });
}

const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', 'tool-use': 'tool_use' };

function* frames(answer: ScriptedResponse, context: FrameContext): Generator<Frame | Fault> {
  const { parts = [], usage = USAGE } = answer;
  yield event({
    type: 'message_start',
    message: {
      id: `msg_${context.id}`,
      type: 'message',
      role: 'assistant',
      model: context.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      // The input is counted immediately, the output only so far: one token.
      usage: { input_tokens: usage.inputTokens, output_tokens: 1 },
    },
  });
  let index = 0;
  for (const part of parts) {
    if (isFault(part)) yield part;
    else yield* block(part, index, context);
    index += 'search' in part ? 2 : 1;
  }
  const delta = { stop_reason: STOP_REASONS[toFinish(answer)], stop_sequence: null };
  yield event({ type: 'message_delta', delta, usage: { output_tokens: usage.outputTokens } });
  yield event({ type: 'message_stop' });
}

function* block(
  part: Exclude<ScriptedResponsePart, Fault>,
  at: number,
  context: FrameContext,
): Generator<Frame | Fault> {
  let index = at;
  const start = (content_block: Event): Frame => event({ type: 'content_block_start', index, content_block });
  function* deltas(type: string, field: string, chunks: ReturnType<typeof toChunks>): Generator<Frame | Fault> {
    for (const chunk of chunks) {
      if (typeof chunk !== 'string') yield chunk;
      else yield event({ type: 'content_block_delta', index, delta: { type, [field]: chunk } }, chunk);
    }
  }
  if ('text' in part) {
    yield start({ type: 'text', text: '' });
    yield* deltas('text_delta', 'text', toChunks(part.text));
  } else if ('thinking' in part) {
    yield start({ type: 'thinking', thinking: '' });
    yield* deltas('thinking_delta', 'thinking', toChunks(part.thinking));
    const signature = part.signature ?? `sig_${context.id}_${index}_${joinWords(part.thinking).length}`;
    if (signature !== false) {
      context.issue(signature);
      yield event({ type: 'content_block_delta', index, delta: { type: 'signature_delta', signature } });
    }
  } else if ('redacted' in part) {
    context.issue(part.redacted);
    yield start({ type: 'redacted_thinking', data: part.redacted });
  } else if ('search' in part) {
    const [call, result] = searchBlocks(part, `${context.id}_${index}`);
    yield start({ ...call, input: {} });
    yield* deltas('input_json_delta', 'partial_json', [JSON.stringify(call.input)]);
    yield event({ type: 'content_block_stop', index });
    if (part.fault) yield part.fault;
    yield event({ type: 'content_block_start', index: ++index, content_block: result });
  } else {
    yield start({ type: 'tool_use', id: part.id ?? `toolu_${context.id}_${index}`, name: part.call, input: {} });
    yield* deltas('input_json_delta', 'partial_json', toChunks(toArguments(part)));
  }
  yield event({ type: 'content_block_stop', index });
}

/** The call and the result of a web search. */
export function searchBlocks(
  { search, id }: Extract<ScriptedResponsePart, { search: string }>,
  usualId: string,
): [Event & { readonly input: unknown }, Event] {
  const tool_use_id = id ?? `srvtoolu_${usualId}`;
  const page = { type: 'web_search_result', url: 'https://example.com', title: 'A page', page_age: null };
  return [
    { type: 'server_tool_use', id: tool_use_id, name: 'web_search', input: { query: search } },
    { type: 'web_search_tool_result', tool_use_id, content: [{ ...page, encrypted_content: 'opaque' }] },
  ];
}

function errorType(status: number): string {
  switch (status) {
    case 400:
      return 'invalid_request_error';
    case 401:
      return 'authentication_error';
    case 429:
      return 'rate_limit_error';
    case 529:
      return 'overloaded_error';
    default:
      return 'api_error';
  }
}

import {
  type Answer,
  type AnswerPart,
  argumentsOf,
  type Chunks,
  chunksOf,
  type Fault,
  type Frame,
  finishOf,
  isFault,
  USAGE,
  wordsIn,
} from './script.ts';
import { validateResponses } from './strict-responses.ts';
import { type FrameContext, frame, type Wire } from './wire.ts';
import { openAiFailure } from './wire-chat.ts';

/** OpenAI Responses, as it streams. */
export const responsesWire: Wire = {
  format: 'responses',
  path: '/responses',
  frames,
  failure: openAiFailure,
  overloaded() {
    const error = {
      type: 'server_error',
      code: 'server_is_overloaded',
      message: 'The server is overloaded',
      param: null,
    };
    return event({ type: 'error', sequence_number: 0, error });
  },
  validate: validateResponses,
};

type Event = { readonly type: string } & Readonly<Record<string, unknown>>;

function event(data: Event, words?: string): Frame {
  return frame(data, { event: data.type, ...(words !== undefined && { words }) });
}

function* frames(answer: Answer, context: FrameContext): Generator<Frame | Fault> {
  const { parts = [], usage = USAGE } = answer;
  const response = { id: `resp_${context.id}`, object: 'response', created_at: 1_700_000_000, model: context.model };
  const running = { ...response, status: 'in_progress', output: [], usage: null };
  yield event({ type: 'response.created', response: running });
  yield event({ type: 'response.in_progress', response: running });
  let output_index = 0;
  for (const part of parts) {
    if (isFault(part)) yield part;
    else yield* item(part, output_index++, context);
  }
  const { inputTokens, outputTokens } = usage;
  const counts = { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
  const isCut = finishOf(answer) === 'length';
  const status = isCut ? 'incomplete' : 'completed';
  const incomplete_details = isCut ? { reason: 'max_output_tokens' } : null;
  yield event({ type: `response.${status}`, response: { ...response, status, incomplete_details, usage: counts } });
}

function* item(
  part: Exclude<AnswerPart, Fault>,
  output_index: number,
  context: FrameContext,
): Generator<Frame | Fault> {
  const id = `${context.id}_${output_index}`;
  const added = (it: Event): Frame => event({ type: 'response.output_item.added', output_index, item: it });
  const done = (it: Event): Frame => event({ type: 'response.output_item.done', output_index, item: it });
  function* deltas(type: string, item_id: string, chunks: Chunks): Generator<Frame | Fault> {
    for (const delta of chunksOf(chunks)) {
      if (typeof delta !== 'string') yield delta;
      else yield event({ type, item_id, output_index, content_index: 0, summary_index: 0, delta }, delta);
    }
  }
  if ('text' in part) {
    const message = { type: 'message', id: `msg_${id}`, role: 'assistant' };
    yield added({ ...message, status: 'in_progress', content: [] });
    yield* deltas('response.output_text.delta', message.id, part.text);
    const content = [{ type: 'output_text', text: wordsIn(part.text), annotations: [] }];
    yield done({ ...message, status: 'completed', content });
  } else if ('call' in part) {
    const call = { type: 'function_call', id: `fc_${id}`, call_id: part.id ?? `call_${id}`, name: part.call };
    const chunks = argumentsOf(part);
    yield added({ ...call, status: 'in_progress', arguments: '' });
    yield* deltas('response.function_call_arguments.delta', call.id, chunks);
    const text = wordsIn(chunks);
    yield event({ type: 'response.function_call_arguments.done', item_id: call.id, output_index, arguments: text });
    yield done({ ...call, status: 'completed', arguments: text });
  } else {
    const thought = { type: 'reasoning', id: `rs_${id}` };
    const about = { item_id: thought.id, output_index, summary_index: 0 };
    yield added({ ...thought, encrypted_content: null, summary: [] });
    if ('thinking' in part) {
      yield event({ type: 'response.reasoning_summary_part.added', ...about });
      yield* deltas('response.reasoning_summary_text.delta', thought.id, part.thinking);
      yield event({ type: 'response.reasoning_summary_part.done', ...about });
    }
    const proof = 'redacted' in part ? part.redacted : (part.signature ?? `enc_${id}`);
    if (proof !== false) context.issue(proof);
    const summary = 'thinking' in part ? [{ type: 'summary_text', text: wordsIn(part.thinking) }] : [];
    yield done({ ...thought, encrypted_content: proof === false ? null : proof, summary });
  }
}

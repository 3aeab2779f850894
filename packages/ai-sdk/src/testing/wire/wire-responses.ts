import {
  type Chunks,
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
import { validateResponses } from '../strict/strict-responses.ts';
import { type FrameContext, frame, type Wire } from './wire.ts';
import { openAiFailure } from './wire-chat.ts';

/** The stream format of OpenAI Responses. */
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
type Item = Readonly<Record<string, unknown>>;
type Send = (data: Event, words?: string) => Frame;

function event(data: Event, words?: string): Frame {
  return frame(data, { event: data.type, ...(words !== undefined && { words }) });
}

/** Numbers events as they are sent. */
function numbered(): Send {
  let sequence_number = 0;
  return (data, words) => event({ ...data, sequence_number: sequence_number++ }, words);
}

function* frames(answer: ScriptedResponse, context: FrameContext): Generator<Frame | Fault> {
  const { parts = [], usage = USAGE } = answer;
  const send = numbered();
  const response = { id: `resp_${context.id}`, object: 'response', created_at: 1_700_000_000, model: context.model };
  const running = { ...response, status: 'in_progress', output: [], usage: null };
  yield send({ type: 'response.created', response: running });
  yield send({ type: 'response.in_progress', response: running });
  const output: Item[] = [];
  for (const part of parts) {
    if (isFault(part)) yield part;
    else output.push(yield* item(part, { send, context, output_index: output.length }));
  }
  const { inputTokens, outputTokens } = usage;
  const counts = { input_tokens: inputTokens, output_tokens: outputTokens, total_tokens: inputTokens + outputTokens };
  const isCut = toFinish(answer) === 'length';
  const status = isCut ? 'incomplete' : 'completed';
  const incomplete_details = isCut ? { reason: 'max_output_tokens' } : null;
  const whole = { ...response, status, incomplete_details, output, usage: counts };
  yield send({ type: `response.${status}`, response: whole });
}

interface Position {
  readonly send: Send;
  readonly context: FrameContext;
  readonly output_index: number;
}

/** The events of one item, in the order in which OpenAI sends them. Returns the whole item. */
function* item(part: Exclude<ScriptedResponsePart, Fault>, position: Position): Generator<Frame | Fault, Item> {
  const { send, context, output_index } = position;
  const id = `${context.id}_${output_index}`;
  let whole: Item;
  if ('text' in part) {
    const message = { type: 'message', id: `msg_${id}`, role: 'assistant' };
    yield send({
      type: 'response.output_item.added',
      output_index,
      item: { ...message, status: 'in_progress', content: [] },
    });
    const content = yield* words(part.text, message.id, position);
    whole = { ...message, status: 'completed', content: [content] };
  } else if ('call' in part) {
    const call = { type: 'function_call', id: `fc_${id}`, call_id: part.id ?? `call_${id}`, name: part.call };
    yield send({
      type: 'response.output_item.added',
      output_index,
      item: { ...call, status: 'in_progress', arguments: '' },
    });
    const about = { item_id: call.id, output_index };
    yield* deltas(toArguments(part), { type: 'response.function_call_arguments.delta', ...about }, send);
    const text = joinWords(toArguments(part));
    yield send({ type: 'response.function_call_arguments.done', ...about, name: part.call, arguments: text });
    whole = { ...call, status: 'completed', arguments: text };
  } else if ('search' in part) {
    const search = { type: 'web_search_call', id: part.id ?? `ws_${id}` };
    yield send({ type: 'response.output_item.added', output_index, item: { ...search, status: 'in_progress' } });
    yield send({ type: 'response.web_search_call.searching', output_index, item_id: search.id });
    if (part.fault) yield part.fault;
    whole = { ...search, status: 'completed', action: { type: 'search', query: part.search } };
  } else {
    const thought = { type: 'reasoning', id: `rs_${id}` };
    yield send({
      type: 'response.output_item.added',
      output_index,
      item: { ...thought, encrypted_content: null, summary: [] },
    });
    const summary = 'thinking' in part ? [yield* writeSummary(part.thinking, thought.id, position)] : [];
    const proof = 'redacted' in part ? part.redacted : (part.signature ?? `enc_${id}`);
    if (proof !== false) context.issue(proof);
    whole = { ...thought, encrypted_content: proof === false ? null : proof, summary };
  }
  yield send({ type: 'response.output_item.done', output_index, item: whole });
  return whole;
}

function* words(text: Chunks, item_id: string, { send, output_index }: Position): Generator<Frame | Fault, Item> {
  const about = { item_id, output_index, content_index: 0 };
  const part = (content: string): Item => ({ type: 'output_text', text: content, annotations: [], logprobs: [] });
  yield send({ type: 'response.content_part.added', ...about, part: part('') });
  yield* deltas(text, { type: 'response.output_text.delta', ...about, logprobs: [] }, send);
  yield send({ type: 'response.output_text.done', ...about, text: joinWords(text), logprobs: [] });
  yield send({ type: 'response.content_part.done', ...about, part: part(joinWords(text)) });
  return part(joinWords(text));
}

function* writeSummary(
  text: Chunks,
  item_id: string,
  { send, output_index }: Position,
): Generator<Frame | Fault, Item> {
  const about = { item_id, output_index, summary_index: 0 };
  const part = (content: string): Item => ({ type: 'summary_text', text: content });
  yield send({ type: 'response.reasoning_summary_part.added', ...about, part: part('') });
  yield* deltas(text, { type: 'response.reasoning_summary_text.delta', ...about }, send);
  yield send({ type: 'response.reasoning_summary_text.done', ...about, text: joinWords(text) });
  yield send({ type: 'response.reasoning_summary_part.done', ...about, part: part(joinWords(text)) });
  return part(joinWords(text));
}

function* deltas(chunks: Chunks, about: Event, send: Send): Generator<Frame | Fault> {
  for (const delta of toChunks(chunks)) yield typeof delta === 'string' ? send({ ...about, delta }, delta) : delta;
}

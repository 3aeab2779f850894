import {
  type Fault,
  isFault,
  joinWords,
  type ScriptedResponse,
  type ScriptedResponsePart,
  toArguments,
  toFinish,
  USAGE,
} from './script.ts';
import type { FrameContext, WireFormat } from './wire/wire.ts';
import { searchBlocks } from './wire/wire-anthropic.ts';

type Part = Exclude<ScriptedResponsePart, Fault>;
type Body = Readonly<Record<string, unknown>>;

/** Formats an answer in one piece, for clients that do not stream. The ids are the same as in its stream. */
export const whole: Readonly<Record<WireFormat, (answer: ScriptedResponse, context: FrameContext) => Body>> = {
  chat(answer, { id, model }) {
    const parts = toSpokenParts(answer);
    const content = parts.map((part) => ('text' in part ? joinWords(part.text) : '')).join('');
    const calls = parts.filter((part) => 'call' in part);
    const tool_calls = calls.map((call, index) => ({
      id: call.id ?? `call_${id}_${index}`,
      type: 'function',
      function: { name: call.call, arguments: joinWords(toArguments(call)) },
    }));
    const finish_reason = { stop: 'stop', length: 'length', 'tool-use': 'tool_calls' }[toFinish(answer)];
    const message = { role: 'assistant', content: content || null, ...(calls.length > 0 && { tool_calls }) };
    const [prompt_tokens, completion_tokens, total_tokens] = toCounts(answer);
    return {
      id: `chatcmpl-${id}`,
      object: 'chat.completion',
      created: 1_700_000_000,
      model,
      choices: [{ index: 0, message, finish_reason }],
      usage: { prompt_tokens, completion_tokens, total_tokens },
    };
  },

  responses(answer, { id, model }) {
    const isCut = toFinish(answer) === 'length';
    const [input_tokens, output_tokens, total_tokens] = toCounts(answer);
    return {
      id: `resp_${id}`,
      object: 'response',
      created_at: 1_700_000_000,
      model,
      status: isCut ? 'incomplete' : 'completed',
      incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
      output: toSpokenParts(answer).map((part, index) => responsesItem(part, `${id}_${index}`)),
      usage: { input_tokens, output_tokens, total_tokens },
    };
  },

  anthropic(answer, { id, model }) {
    const [input_tokens, output_tokens] = toCounts(answer);
    return {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model,
      content: toSpokenParts(answer).flatMap((part, index) => anthropicBlocks(part, `${id}_${index}`)),
      stop_reason: { stop: 'end_turn', length: 'max_tokens', 'tool-use': 'tool_use' }[toFinish(answer)],
      stop_sequence: null,
      usage: { input_tokens, output_tokens },
    };
  },
};

function toSpokenParts({ parts = [] }: ScriptedResponse): readonly Part[] {
  return parts.filter((part): part is Part => !isFault(part));
}

function toCounts({ usage: { inputTokens, outputTokens } = USAGE }: ScriptedResponse): [number, number, number] {
  return [inputTokens, outputTokens, inputTokens + outputTokens];
}

function responsesItem(part: Part, id: string): Body {
  if ('text' in part) {
    const content = [{ type: 'output_text', text: joinWords(part.text), annotations: [] }];
    return { type: 'message', id: `msg_${id}`, role: 'assistant', status: 'completed', content };
  }
  if ('call' in part) {
    const call = { call_id: part.id ?? `call_${id}`, name: part.call, arguments: joinWords(toArguments(part)) };
    return { type: 'function_call', id: `fc_${id}`, ...call };
  }
  if ('search' in part) {
    const action = { type: 'search', query: part.search };
    return { type: 'web_search_call', id: part.id ?? `ws_${id}`, status: 'completed', action };
  }
  const summary = 'thinking' in part ? [{ type: 'summary_text', text: joinWords(part.thinking) }] : [];
  const proof = 'redacted' in part ? part.redacted : (part.signature ?? `enc_${id}`);
  return { type: 'reasoning', id: `rs_${id}`, summary, encrypted_content: proof === false ? null : proof };
}

function anthropicBlocks(part: Part, id: string): readonly Body[] {
  if ('text' in part) return [{ type: 'text', text: joinWords(part.text) }];
  if ('redacted' in part) return [{ type: 'redacted_thinking', data: part.redacted }];
  if ('search' in part) return searchBlocks(part, id);
  if ('thinking' in part) {
    const thinking = joinWords(part.thinking);
    const signature = part.signature ?? `sig_${id}_${thinking.length}`;
    return [{ type: 'thinking', thinking, signature: signature === false ? '' : signature }];
  }
  const input = parsed(joinWords(toArguments(part)));
  return [{ type: 'tool_use', id: part.id ?? `toolu_${id}`, name: part.call, input }];
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return {};
  }
}

// The content of a request to a model, in any vendor's format.
import type { LoopbackProvider } from '@whoa/ai-sdk/testing';

type LoopbackRequest = LoopbackProvider['requests'][number];
type Fields = Record<string, unknown>;

export interface CallInRequest {
  readonly tool: string;
  /** What the model sees of it, if anything. */
  readonly result: string | undefined;
}

const fields = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : []);
const words = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''));

export function callsIn({ body }: LoopbackRequest): CallInRequest[] {
  const messages = fields(body['messages']);
  const blocks = [...fields(body['input']), ...messages, ...messages.flatMap(({ content }) => fields(content))];
  const results = new Map(blocks.flatMap((block) => findResult(block) ?? []));
  return blocks.flatMap(findCalls).map(({ id, tool }) => ({ tool, result: results.get(id) }));
}

function findCalls(block: Fields): { id: string; tool: string }[] {
  if (block['type'] === 'function_call') return [{ id: words(block['call_id']), tool: words(block['name']) }];
  if (block['type'] === 'tool_use') return [{ id: words(block['id']), tool: words(block['name']) }];
  return fields(block['tool_calls']).map((call) => ({
    id: words(call['id']),
    tool: words((call['function'] as Fields)['name']),
  }));
}

function findResult(block: Fields): [string, string][] | undefined {
  if (block['type'] === 'function_call_output') return [[words(block['call_id']), words(block['output'])]];
  if (block['type'] === 'tool_result') return [[words(block['tool_use_id']), words(block['content'])]];
  return block['role'] === 'tool' ? [[words(block['tool_call_id']), words(block['content'])]] : undefined;
}

import type { Rule } from '../rules.ts';
import {
  type Fields,
  findFirst,
  findLoneSurrogate,
  isEmptyContent,
  isJsonObject,
  type ProviderRefusal,
  type StrictOptions,
  TOOL_NAME,
  toFields,
  toList,
  toText,
} from './strict.ts';
import { UNREADABLE } from './strict-chat.ts';

/** Finds what OpenAI's Responses API would refuse in a request's history. */
export function validateResponses(body: unknown, options: StrictOptions = {}): ProviderRefusal | undefined {
  const { input, tools } = toFields(body);
  if (findLoneSurrogate(body) !== undefined) return refused('responses-unicode', UNREADABLE);
  if (typeof input === 'string')
    return input.trim() === '' ? refused('responses-not-empty', "Invalid 'input': empty.") : undefined;
  return findFirst(refusals(toList(input), options)) ?? findFirst(checkTools(toList(tools)));
}

function* checkTools(tools: readonly Fields[]): Generator<ProviderRefusal> {
  for (const [index, { type, name }] of tools.entries())
    if (type === 'function') yield* checkName(name, `tools[${index}]`);
}

function* checkName(name: unknown, at: string): Generator<ProviderRefusal> {
  if (TOOL_NAME.test(toText(name))) return;
  const detail = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
  yield refused('responses-name', `Invalid '${at}.name': ${detail}`);
}

const MAX_ID_LENGTH = 64;

function* refusals(items: readonly Fields[], options: StrictOptions): Generator<ProviderRefusal> {
  if (items.length === 0) yield refused('responses-not-empty', "Invalid 'input': empty array.");
  const calls = new Set<string>();
  const open = new Set<string>();
  for (const [index, item] of items.entries()) {
    switch (item['type'] ?? 'message') {
      case 'function_call':
        yield* checkCall(item, calls);
        calls.add(toText(item['call_id']));
        open.add(toText(item['call_id']));
        break;
      case 'function_call_output':
        yield* checkOutput(item, calls, open);
        open.delete(toText(item['call_id']));
        break;
      case 'reasoning':
        yield* checkReasoning(item, items[index + 1], options);
        break;
      case 'web_search_call':
        break;
      case 'item_reference':
        yield refused('responses-reference', `Item with id '${toText(item['id'])}' not found.`);
        break;
      default:
        // A result must come before the next message.
        if (item['role'] !== 'assistant') yield* unanswered(open);
        if (isEmptyContent(item['content']))
          yield {
            rule: 'responses-content',
            message: `Invalid value for 'content': expected non-empty content.`,
            param: `input[${index}].content`,
          };
    }
  }
  yield* unanswered(open);
}

function* checkCall(item: Fields, calls: ReadonlySet<string>): Generator<ProviderRefusal> {
  const id = toText(item['call_id']);
  if (id === '') yield refused('responses-id', "Missing required parameter: 'call_id'.");
  if (id.length > MAX_ID_LENGTH) {
    const detail = `string too long. Expected a string with maximum length ${MAX_ID_LENGTH}`;
    yield refused('responses-id', `Invalid 'input.call_id': ${detail}`);
  }
  yield* checkName(item['name'], 'input');
  if (calls.has(id)) yield refused('responses-id', `Duplicate function call with call_id ${id}.`);
  if (!isJsonObject(item['arguments']))
    yield refused('responses-arguments', `Invalid arguments of function call ${id}: no JSON object.`);
}

function* checkOutput(item: Fields, calls: ReadonlySet<string>, open: ReadonlySet<string>): Generator<ProviderRefusal> {
  const id = toText(item['call_id']);
  if (!calls.has(id))
    yield refused('responses-result-of-call', `No tool call found for function call output with call_id ${id}.`);
  if (!open.has(id)) yield refused('responses-one-result', `Duplicate function call output with call_id ${id}.`);
}

function* checkReasoning(
  item: Fields,
  next: Fields | undefined,
  { isGenuine }: StrictOptions,
): Generator<ProviderRefusal> {
  const id = toText(item['id']);
  const proof = toText(item['encrypted_content']);
  if (proof === '') {
    const detail = 'Items are not persisted when `store` is set to false.';
    yield refused('responses-reasoning', `Item with id '${id}' not found. ${detail} Try again with encrypted content.`);
  }
  if (isGenuine?.(proof) === false)
    yield refused('responses-reasoning', `The encrypted content for item ${id} could not be verified.`);
  const followers: unknown[] = ['function_call', 'web_search_call', 'reasoning'];
  const follows = followers.includes(next?.['type']) || next?.['role'] === 'assistant';
  if (!follows)
    yield refused(
      'responses-reasoning-follows',
      `Item '${id}' of type 'reasoning' was provided without its required following item.`,
    );
}

function* unanswered(open: ReadonlySet<string>): Generator<ProviderRefusal> {
  for (const id of open) yield refused('responses-answered', `No tool output found for function call ${id}.`);
}

function refused(rule: Rule, message: string): ProviderRefusal {
  return { rule, message, param: 'input' };
}

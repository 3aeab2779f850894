import {
  type Fields,
  fieldsOf,
  firstOf,
  isEmptyContent,
  isJsonObject,
  listOf,
  type Refusal,
  type StrictOptions,
  textIn,
} from './strict.ts';

/** What OpenAI's Responses API would refuse about a request's history. */
export function validateResponses(body: unknown, options: StrictOptions = {}): Refusal | undefined {
  const { input } = fieldsOf(body);
  if (typeof input === 'string') return input.trim() === '' ? refused("Invalid 'input': empty.") : undefined;
  return firstOf(refusals(listOf(input), options));
}

function* refusals(items: readonly Fields[], options: StrictOptions): Generator<Refusal> {
  if (items.length === 0) yield refused("Invalid 'input': empty array.");
  const calls = new Set<string>();
  const open = new Set<string>();
  for (const [index, item] of items.entries()) {
    switch (item['type'] ?? 'message') {
      case 'function_call':
        yield* checkCall(item, calls);
        calls.add(textIn(item['call_id']));
        open.add(textIn(item['call_id']));
        break;
      case 'function_call_output':
        yield* checkOutput(item, calls, open);
        open.delete(textIn(item['call_id']));
        break;
      case 'reasoning':
        yield* checkReasoning(item, items[index + 1], options);
        break;
      case 'item_reference':
        yield refused(`Item with id '${textIn(item['id'])}' not found.`);
        break;
      default:
        // A result stands before anybody speaks again.
        if (item['role'] !== 'assistant') yield* unanswered(open);
        if (isEmptyContent(item['content']))
          yield {
            message: `Invalid value for 'content': expected non-empty content.`,
            param: `input[${index}].content`,
          };
    }
  }
  yield* unanswered(open);
}

function* checkCall(item: Fields, calls: ReadonlySet<string>): Generator<Refusal> {
  const id = textIn(item['call_id']);
  if (id === '') yield refused("Missing required parameter: 'call_id'.");
  if (calls.has(id)) yield refused(`Duplicate function call with call_id ${id}.`);
  if (!isJsonObject(item['arguments'])) yield refused(`Invalid arguments of function call ${id}: no JSON object.`);
}

function* checkOutput(item: Fields, calls: ReadonlySet<string>, open: ReadonlySet<string>): Generator<Refusal> {
  const id = textIn(item['call_id']);
  if (!calls.has(id)) yield refused(`No tool call found for function call output with call_id ${id}.`);
  if (!open.has(id)) yield refused(`Duplicate function call output with call_id ${id}.`);
}

function* checkReasoning(item: Fields, next: Fields | undefined, { isGenuine }: StrictOptions): Generator<Refusal> {
  const id = textIn(item['id']);
  const proof = textIn(item['encrypted_content']);
  if (proof === '') {
    const said = 'Items are not persisted when `store` is set to false.';
    yield refused(`Item with id '${id}' not found. ${said} Try again with encrypted content.`);
  }
  if (isGenuine?.(proof) === false) yield refused(`The encrypted content for item ${id} could not be verified.`);
  const follows =
    next?.['type'] === 'function_call' || next?.['type'] === 'reasoning' || next?.['role'] === 'assistant';
  if (!follows) yield refused(`Item '${id}' of type 'reasoning' was provided without its required following item.`);
}

function* unanswered(open: ReadonlySet<string>): Generator<Refusal> {
  for (const id of open) yield refused(`No tool output found for function call ${id}.`);
}

function refused(message: string): Refusal {
  return { message, param: 'input' };
}

import {
  type Fields,
  findFirst,
  findLoneSurrogate,
  isEmptyContent,
  isJsonObject,
  type ProviderRefusal,
  TOOL_NAME,
  toFields,
  toList,
  toText,
} from './strict.ts';

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

/** Finds what OpenAI's Chat Completions API would refuse in a request's history. */
export function validateChat(body: unknown): ProviderRefusal | undefined {
  const { messages, tools } = toFields(body);
  const half = findLoneSurrogate(body);
  if (half !== undefined) return { rule: 'chat-unicode', message: UNREADABLE, param: half };
  return findFirst(refusals(toList(messages))) ?? findFirst(checkTools(toList(tools)));
}

/** OpenAI's error for a body it cannot parse. */
export const UNREADABLE = 'We could not parse the JSON body of your request. (HINT: the text must be valid Unicode.)';

function* checkTools(tools: readonly Fields[]): Generator<ProviderRefusal> {
  for (const [index, tool] of tools.entries())
    if (tool['type'] === 'function') yield* checkName(tool, `tools[${index}]`);
}

function* checkName(call: Fields, at: string): Generator<ProviderRefusal> {
  const param = `${at}.function.name`;
  if (TOOL_NAME.test(toText(toFields(call['function'])['name']))) return;
  const detail = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.";
  yield { rule: 'chat-name', message: `Invalid '${param}': ${detail}`, param };
}

const MAX_ID_LENGTH = 40;

function* refusals(messages: readonly Fields[]): Generator<ProviderRefusal> {
  if (messages.length === 0)
    yield {
      rule: 'chat-not-empty',
      message: "Invalid 'messages': empty array. Expected an array with minimum length 1.",
      param: 'messages',
    };
  /** Calls that wait for their results. Only `tool` messages may come between a call and its result. */
  let open = new Set<string>();
  let answered = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const at = `messages.[${index}]`;
    if (!ROLES.has(toText(message['role'])))
      yield { rule: 'chat-role', message: `Invalid value: '${toText(message['role'])}'.`, param: `${at}.role` };
    if (message['role'] === 'tool') {
      yield* checkResult({ message, at, open, answered });
      continue;
    }
    if (open.size > 0) yield unanswered(open, at);
    const calls = toList(message['tool_calls']);
    open = new Set(calls.map(({ id }) => toText(id)));
    answered = new Set();
    if (message['role'] === 'assistant') yield* checkAssistant(message, at);
    else if (isEmptyContent(message['content']))
      yield {
        rule: 'chat-content',
        message: `Invalid value for 'content': expected a non-empty string.`,
        param: `${at}.content`,
      };
  }
  if (open.size > 0) yield unanswered(open, `messages.[${messages.length}]`);
}

interface ResultCheck {
  readonly message: Fields;
  readonly at: string;
  readonly open: Set<string>;
  readonly answered: Set<string>;
}

function* checkResult({ message, at, open, answered }: ResultCheck): Generator<ProviderRefusal> {
  const id = toText(message['tool_call_id']);
  if (open.size === 0 && answered.size === 0) {
    const detail = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    yield { rule: 'chat-result-of-call', message: `Invalid parameter: ${detail}`, param: `${at}.role` };
  }
  if (answered.has(id)) {
    yield {
      rule: 'chat-one-result',
      message: `Invalid parameter: Duplicate value for 'tool_call_id' of '${id}'.`,
      param: `${at}.tool_call_id`,
    };
  }
  if (!open.delete(id)) {
    const detail = `'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`;
    yield { rule: 'chat-result-of-call', message: `Invalid parameter: ${detail}`, param: `${at}.tool_call_id` };
  }
  answered.add(id);
}

function* checkAssistant(message: Fields, at: string): Generator<ProviderRefusal> {
  const calls = toList(message['tool_calls']);
  if (Array.isArray(message['tool_calls']) && calls.length === 0) {
    const detail = 'empty array. Expected an array with minimum length 1, but got an empty array instead.';
    yield { rule: 'chat-calls-not-empty', message: `Invalid '${at}.tool_calls': ${detail}`, param: `${at}.tool_calls` };
  }
  if (calls.length === 0 && isEmptyContent(message['content']))
    yield {
      rule: 'chat-content',
      message: `Invalid value for 'content': expected a string, got null.`,
      param: `${at}.content`,
    };
  const ids = calls.map(({ id }) => toText(id));
  if (ids.includes('') || new Set(ids).size < ids.length)
    yield {
      rule: 'chat-id',
      message: `Invalid '${at}.tool_calls': ids must be unique and not empty.`,
      param: `${at}.tool_calls`,
    };
  for (const [index, call] of calls.entries()) {
    const where = `${at}.tool_calls[${index}]`;
    if (toText(call['id']).length > MAX_ID_LENGTH) {
      const detail = `string too long. Expected a string with maximum length ${MAX_ID_LENGTH}`;
      yield { rule: 'chat-id', message: `Invalid '${where}.id': ${detail}`, param: `${where}.id` };
    }
    yield* checkName(call, where);
    if (!isJsonObject(toFields(call['function'])['arguments']))
      yield {
        rule: 'chat-arguments',
        message: `Invalid '${at}.tool_calls': arguments must be a JSON object.`,
        param: `${at}.tool_calls`,
      };
  }
}

function unanswered(open: ReadonlySet<string>, param: string): ProviderRefusal {
  const rule =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
  const ids = [...open].join(', ');
  return {
    rule: 'chat-answered',
    message: `${rule} The following tool_call_ids did not have response messages: ${ids}`,
    param,
  };
}

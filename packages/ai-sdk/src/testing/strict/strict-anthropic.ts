import {
  type Fields,
  findFirst,
  findLoneSurrogate,
  type ProviderRefusal,
  type StrictOptions,
  TOOL_NAME,
  toFields,
  toList,
  toText,
} from './strict.ts';

/** Finds what Anthropic's Messages API would refuse in a request's history. */
export function validateAnthropic(body: unknown, options: StrictOptions = {}): ProviderRefusal | undefined {
  const { messages, thinking, tools } = toFields(body);
  const half = findLoneSurrogate(body);
  if (half !== undefined)
    return {
      rule: 'anthropic-unicode',
      message: `The request body is not valid JSON: no low surrogate in string: ${half}`,
    };
  const isThinking = toFields(thinking)['type'] === 'enabled';
  return findFirst(refusals(toList(messages), { ...options, isThinking })) ?? findFirst(checkTools(toList(tools)));
}

function* checkTools(tools: readonly Fields[]): Generator<ProviderRefusal> {
  for (const [index, { type = 'custom', name }] of tools.entries())
    if (type === 'custom') yield* checkName(name, `tools.${index}.custom.name`);
}

function* checkName(name: unknown, where: string): Generator<ProviderRefusal> {
  if (TOOL_NAME.test(toText(name))) return;
  yield { rule: 'anthropic-name', message: `${where}: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'` };
}

interface Rules extends StrictOptions {
  readonly isThinking: boolean;
}

function* refusals(messages: readonly Fields[], rules: Rules): Generator<ProviderRefusal> {
  if (messages.length === 0)
    yield { rule: 'anthropic-not-empty', message: 'messages: at least one message is required' };
  if (messages[0] !== undefined && messages[0]['role'] !== 'user')
    yield { rule: 'anthropic-first', message: 'messages: first message must use the "user" role' };
  const seen = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const isLast = index === messages.length - 1;
    if (message['role'] !== 'user' && message['role'] !== 'assistant')
      yield { rule: 'anthropic-role', message: `messages.${index}.role: Input should be 'user' or 'assistant'` };
    const blocks = toBlocks(message);
    if (blocks.length === 0 && !(isLast && message['role'] === 'assistant')) {
      const rule = 'all messages must have non-empty content except for the optional final assistant message';
      yield { rule: 'anthropic-content', message: `messages.${index}: ${rule}` };
    }
    yield* checkTexts(blocks);
    if (message['role'] === 'assistant') {
      yield* checkAssistant({ blocks, index, isLast, seen }, rules);
      yield* checkAnswered(findCalls(message), messages[index + 1], index);
    } else yield* checkResults(blocks, findCalls(messages[index - 1]), index);
  }
  yield* checkServerTools(messages);
  if (rules.isThinking) yield* checkThinkingFirst(messages);
}

/** A call that the vendor runs may wait for its result only while its turn continues: nothing but results may follow. */
function* checkServerTools(messages: readonly Fields[]): Generator<ProviderRefusal> {
  const end = messages.findLastIndex((message) => toBlocks(message).some(({ type }) => type !== 'tool_result'));
  const results = new Set(messages.flatMap(toBlocks).map((block) => toText(block['tool_use_id'])));
  for (const [index, message] of messages.slice(0, end).entries())
    for (const { id, name } of ofType(toBlocks(message), 'server_tool_use')) {
      if (results.has(toText(id))) continue;
      const found = `\`${toText(name)}\` tool use with id \`${toText(id)}\` was found`;
      const missing = `without a corresponding \`${toText(name)}_tool_result\` block`;
      yield { rule: 'anthropic-server-tool-answered', message: `messages.${index}: ${found} ${missing}` };
    }
}

function toBlocks(message: Fields | undefined): readonly Fields[] {
  const content = message?.['content'];
  return typeof content === 'string' ? [{ type: 'text', text: content }] : toList(content);
}

function findCalls(message: Fields | undefined): readonly string[] {
  if (message?.['role'] !== 'assistant') return [];
  return ofType(toBlocks(message), 'tool_use').map(({ id }) => toText(id));
}

function ofType(blocks: readonly Fields[], type: string): readonly Fields[] {
  return blocks.filter((block) => block['type'] === type);
}

function* checkTexts(blocks: readonly Fields[]): Generator<ProviderRefusal> {
  for (const { text } of ofType(blocks, 'text')) {
    if (toText(text) === '')
      yield { rule: 'anthropic-text', message: 'messages: text content blocks must be non-empty' };
    if (toText(text).trim() === '')
      yield { rule: 'anthropic-text', message: 'messages: text content blocks must contain non-whitespace text' };
  }
}

interface AssistantCheck {
  readonly blocks: readonly Fields[];
  readonly index: number;
  readonly isLast: boolean;
  /** The ids of all calls so far. */
  readonly seen: Set<string>;
}

function* checkAssistant({ blocks, index, isLast, seen }: AssistantCheck, rules: Rules): Generator<ProviderRefusal> {
  const last = blocks.at(-1);
  if (last?.['type'] === 'thinking' || last?.['type'] === 'redacted_thinking')
    yield {
      rule: 'anthropic-thinking-last',
      message: `messages.${index}: The final block in an assistant message cannot be \`thinking\`.`,
    };
  if (isLast && last?.['type'] === 'text' && /\s$/.test(toText(last['text'])))
    yield {
      rule: 'anthropic-trailing',
      message: 'messages: final assistant content cannot end with trailing whitespace',
    };
  for (const [at, block] of blocks.entries()) {
    const where = `messages.${index}.content.${at}`;
    if (block['type'] === 'thinking') yield* checkThinking(block, where, rules);
    if (block['type'] === 'redacted_thinking' && rules.isGenuine?.(toText(block['data'])) === false)
      yield { rule: 'anthropic-thinking-proof', message: `${where}: Invalid \`data\` in \`redacted_thinking\` block` };
    if (block['type'] !== 'tool_use') continue;
    const id = toText(block['id']);
    if (!/^[a-zA-Z0-9_-]+$/.test(id))
      yield { rule: 'anthropic-id', message: `${where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'` };
    if (seen.has(id)) yield { rule: 'anthropic-id', message: `${where}: \`tool_use\` ids must be unique` };
    seen.add(id);
    yield* checkName(block['name'], `${where}.tool_use.name`);
    if (typeof block['input'] !== 'object' || block['input'] === null || Array.isArray(block['input']))
      yield { rule: 'anthropic-input', message: `${where}.tool_use.input: Input should be a valid dictionary` };
  }
}

function* checkThinking(block: Fields, where: string, { isGenuine }: Rules): Generator<ProviderRefusal> {
  const signature = toText(block['signature']);
  if (signature === '')
    yield { rule: 'anthropic-thinking-proof', message: `${where}.thinking.signature: Field required` };
  if (isGenuine?.(signature) === false)
    yield { rule: 'anthropic-thinking-proof', message: `${where}: Invalid \`signature\` in \`thinking\` block` };
}

/** Results must come first in the next message; otherwise they are ignored. */
function* checkAnswered(calls: readonly string[], next: Fields | undefined, index: number): Generator<ProviderRefusal> {
  const blocks = next?.['role'] === 'user' ? toBlocks(next) : [];
  const other = blocks.findIndex((block) => block['type'] !== 'tool_result');
  const leading = other === -1 ? blocks : blocks.slice(0, other);
  const answered = new Set(leading.map((block) => toText(block['tool_use_id'])));
  const missing = calls.filter((id) => !answered.has(id));
  if (missing.length === 0) return;
  const found = `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}.`;
  const rule = 'Each `tool_use` block must have a corresponding `tool_result` block in the next message.';
  yield { rule: 'anthropic-answered', message: `messages.${index}: ${found} ${rule}` };
}

function* checkResults(blocks: readonly Fields[], calls: readonly string[], index: number): Generator<ProviderRefusal> {
  const answered = new Set<string>();
  for (const [at, block] of blocks.entries()) {
    if (block['type'] !== 'tool_result') continue;
    const id = toText(block['tool_use_id']);
    const where = `messages.${index}.content.${at}`;
    if (!calls.includes(id)) {
      const found = `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}.`;
      const rule = 'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.';
      yield { rule: 'anthropic-result-of-call', message: `${where}: ${found} ${rule}` };
    }
    if (answered.has(id)) {
      const found = `Found multiple \`tool_result\` blocks with id: ${id}`;
      yield { rule: 'anthropic-one-result', message: `${where}: each tool_use must have a single result. ${found}` };
    }
    answered.add(id);
  }
}

function* checkThinkingFirst(messages: readonly Fields[]): Generator<ProviderRefusal> {
  const index = messages.findLastIndex((message) => message['role'] === 'assistant');
  const first = toBlocks(messages[index])[0];
  if (findCalls(messages[index]).length === 0 || toText(first?.['type']).includes('thinking')) return;
  const found = `Expected \`thinking\` or \`redacted_thinking\`, but found \`${toText(first?.['type'])}\`.`;
  const rule = 'When `thinking` is enabled, a final `assistant` message must start with a thinking block.';
  yield { rule: 'anthropic-thinking-first', message: `messages.${index}.content.0.type: ${found} ${rule}` };
}

const CHAT = 'https://platform.openai.com/docs/api-reference/chat/create';
const RESPONSES = 'https://platform.openai.com/docs/api-reference/responses/create';
const OPENAI_TOOLS = 'https://platform.openai.com/docs/guides/function-calling';
const OPENAI_REASONING = 'https://platform.openai.com/docs/guides/reasoning';
const MESSAGES = 'https://docs.anthropic.com/en/api/messages';
const ANTHROPIC_TOOLS = 'https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use';
const ANTHROPIC_STOP_REASONS = 'https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons';
const ANTHROPIC_THINKING = 'https://docs.anthropic.com/en/docs/build-with-claude/extended-thinking';
const issue = (name: string): string => `https://github.com/${name.replace('#', '/issues/')}`;

/** The name of a rule. A refusal names its rule, so no rule can be without a source. */
export type Rule =
  | 'chat-not-empty'
  | 'chat-role'
  | 'chat-content'
  | 'chat-calls-not-empty'
  | 'chat-answered'
  | 'chat-result-of-call'
  | 'chat-one-result'
  | 'chat-arguments'
  | 'chat-id'
  | 'chat-name'
  | 'chat-unicode'
  | 'responses-not-empty'
  | 'responses-content'
  | 'responses-answered'
  | 'responses-result-of-call'
  | 'responses-one-result'
  | 'responses-arguments'
  | 'responses-id'
  | 'responses-name'
  | 'responses-reasoning'
  | 'responses-reasoning-follows'
  | 'responses-reference'
  | 'responses-unicode'
  | 'anthropic-not-empty'
  | 'anthropic-first'
  | 'anthropic-role'
  | 'anthropic-content'
  | 'anthropic-text'
  | 'anthropic-trailing'
  | 'anthropic-answered'
  | 'anthropic-result-of-call'
  | 'anthropic-one-result'
  | 'anthropic-server-tool-answered'
  | 'anthropic-input'
  | 'anthropic-id'
  | 'anthropic-name'
  | 'anthropic-unicode'
  | 'anthropic-thinking-last'
  | 'anthropic-thinking-proof'
  | 'anthropic-thinking-first';

/**
 * Every rule of the strict validators, and its source: a page of the vendor, a type of its SDK, or, if neither
 * documents it, a public report with the vendor's own response. The types are those of `openai` 7 and
 * `@anthropic-ai/sdk` 1.
 */
export const RULES: Readonly<Record<Rule, string>> = {
  'chat-not-empty': `${CHAT} (messages)`,
  'chat-role': `${CHAT}; type ChatCompletionMessageParam`,
  'chat-content': `${CHAT}; type ChatCompletionAssistantMessageParam: content is required unless tool_calls is given`,
  'chat-calls-not-empty': `${CHAT} (tool_calls)`,
  'chat-answered': `${OPENAI_TOOLS} (handling function calls); ${issue('langchain-ai/langchainjs#8570')}`,
  'chat-result-of-call': `${OPENAI_TOOLS}; type ChatCompletionToolMessageParam: the tool call that this message responds to`,
  'chat-one-result': `${OPENAI_TOOLS}; type ChatCompletionToolMessageParam`,
  'chat-arguments': `${OPENAI_TOOLS}; type ChatCompletionMessageFunctionToolCall.Function: arguments in JSON format`,
  'chat-id': `type ChatCompletionMessageFunctionToolCall: id; at most 40 characters: ${issue('microsoft/autogen#6377')}`,
  'chat-name': `type FunctionDefinition: a-z, A-Z, 0-9, _ and -, at most 64; in a history: ${issue('mcp-use/mcp-use#90')}`,
  'chat-unicode': `RFC 8259, 8.2; ${issue('JohnnyZ93/oai-compatible-copilot#206')} (a compatible server)`,
  'responses-not-empty': `${RESPONSES} (input)`,
  'responses-content': `${RESPONSES}; type ResponseInputItem`,
  'responses-answered': `${OPENAI_TOOLS}; type ResponseInputItem.FunctionCallOutput`,
  'responses-result-of-call': `${OPENAI_TOOLS}; type ResponseInputItem.FunctionCallOutput: call_id`,
  'responses-one-result': `${OPENAI_TOOLS}; type ResponseInputItem.FunctionCallOutput`,
  'responses-arguments': 'type ResponseFunctionToolCall: a JSON string of the arguments',
  'responses-id': `type ResponseFunctionToolCall: the unique ID; at most 64 characters: ${issue('decolua/9router#393')}`,
  'responses-name': 'type FunctionDefinition: a-z, A-Z, 0-9, _ and -, at most 64',
  'responses-reasoning': `${OPENAI_REASONING} (encrypted reasoning items); type ResponseReasoningItem`,
  'responses-reasoning-follows': `${OPENAI_REASONING} (keeping reasoning items in context)`,
  'responses-reference': `${RESPONSES} (store); type ResponseInputItem.ItemReference`,
  'responses-unicode': `RFC 8259, 8.2; ${issue('JohnnyZ93/oai-compatible-copilot#206')} (a compatible server)`,
  'anthropic-not-empty': `${MESSAGES} (messages)`,
  'anthropic-first': `${MESSAGES} (messages): the first message must always use the user role`,
  'anthropic-role': `${MESSAGES}; type MessageParam`,
  'anthropic-content': `${MESSAGES} (messages, content)`,
  'anthropic-text': `${MESSAGES}; type TextBlockParam`,
  'anthropic-trailing': `${MESSAGES} (prefill); https://docs.anthropic.com/en/docs/build-with-claude/prompt-engineering/prefill-claudes-response`,
  'anthropic-answered': `${ANTHROPIC_TOOLS} (tool results immediately follow, and stand first); ${issue('anthropics/claude-code#1881')}`,
  'anthropic-result-of-call': `${ANTHROPIC_TOOLS}; ${issue('tghamm/Anthropic.SDK#184')}`,
  'anthropic-one-result': `${ANTHROPIC_TOOLS}; type ToolResultBlockParam`,
  'anthropic-server-tool-answered': `${ANTHROPIC_STOP_REASONS} (tool_use, pause_turn)`,
  'anthropic-input': `${ANTHROPIC_TOOLS}; type ToolUseBlockParam: input is an object`,
  'anthropic-id': `${MESSAGES}; type ToolUseBlockParam: id, pattern ^[a-zA-Z0-9_-]+$, unique`,
  'anthropic-name': `${ANTHROPIC_TOOLS} (name: ^[a-zA-Z0-9_-]{1,64}$); in a history: ${issue('home-assistant/core#140005')}`,
  'anthropic-unicode': `${issue('anthropics/claude-code#3277')}: not valid JSON: no low surrogate in string`,
  'anthropic-thinking-last': `${ANTHROPIC_THINKING} (preserving thinking blocks)`,
  'anthropic-thinking-proof': `${ANTHROPIC_THINKING} (thinking encryption); types ThinkingBlockParam, RedactedThinkingBlockParam`,
  'anthropic-thinking-first': `${ANTHROPIC_THINKING} (extended thinking with tool use)`,
};

// The vendors' own SDKs read every kind of stream that the loopback provider sends, which proves that it sends the same
// as they do.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { type LoopbackProvider, type ScriptedResponse, startLoopbackProvider, type WireFormat } from './index.ts';

const clients = (provider: LoopbackProvider) => ({
  openAi: new OpenAI({ baseURL: provider.url, apiKey: 'none', maxRetries: 0 }),
  anthropic: new Anthropic({ baseURL: provider.url.replace(/\/v1$/, ''), apiKey: 'none', maxRetries: 0 }),
});

/** An SDK's view of a reply, in one form for all three. */
interface Read {
  readonly text: string;
  readonly thoughts: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
  readonly finish: unknown;
  readonly tokens: readonly [number | undefined, number | undefined];
}

const user = { role: 'user', content: 'Hi' } as const;

const readers: Record<WireFormat, (provider: LoopbackProvider, stream: boolean) => Promise<Read>> = {
  async chat(provider, isStreamed) {
    const { completions } = clients(provider).openAi.chat;
    const request = { model: 'gpt-4o', messages: [user] };
    const { choices, usage } = isStreamed
      ? await completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()
      : await completions.create(request);
    const { message, finish_reason: finish } = choices[0]!;
    const calls = (message.tool_calls ?? []).flatMap((call) =>
      call.type === 'function'
        ? [{ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) as unknown }]
        : [],
    );
    const tokens = [usage?.prompt_tokens, usage?.completion_tokens] as const;
    return { text: message.content ?? '', thoughts: '', calls, finish, tokens };
  },
  async responses(provider, isStreamed) {
    const { responses } = clients(provider).openAi;
    const request = { model: 'gpt-5', input: [user] };
    const response = isStreamed
      ? await responses.stream(request).finalResponse()
      : await responses.create({ ...request, stream: false });
    const text = response.output.flatMap((item) =>
      item.type === 'message' ? item.content.map((part) => (part.type === 'output_text' ? part.text : '')) : [],
    );
    const thoughts = response.output.flatMap((item) =>
      item.type === 'reasoning' ? item.summary.map((part) => part.text) : [],
    );
    const calls = response.output.flatMap((item) =>
      item.type === 'function_call'
        ? [{ id: item.call_id, name: item.name, input: JSON.parse(item.arguments) as unknown }]
        : [],
    );
    const tokens = [response.usage?.input_tokens, response.usage?.output_tokens] as const;
    return { text: text.join(''), thoughts: thoughts.join(''), calls, finish: response.status, tokens };
  },
  async anthropic(provider, isStreamed) {
    const { messages } = clients(provider).anthropic;
    const request = { model: 'claude', max_tokens: 100, messages: [user] };
    const message = isStreamed ? await messages.stream(request).finalMessage() : await messages.create(request);
    const text = message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');
    const thoughts = message.content.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('');
    const calls = message.content.flatMap((block) =>
      block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
    );
    const { usage } = message;
    return { text, thoughts, calls, finish: message.stop_reason, tokens: [usage.input_tokens, usage.output_tokens] };
  },
};

const usage = { inputTokens: 12, outputTokens: 34 };
const finishes: Record<WireFormat, Record<'stop' | 'length' | 'tool-use', string>> = {
  chat: { stop: 'stop', length: 'length', 'tool-use': 'tool_calls' },
  responses: { stop: 'completed', length: 'incomplete', 'tool-use': 'completed' },
  anthropic: { stop: 'end_turn', length: 'max_tokens', 'tool-use': 'tool_use' },
};

describe.each(['chat', 'responses', 'anthropic'] as const)('%s', (format) => {
  describe.each([
    ['streamed', true],
    ['in one piece', false],
  ])('%s', (_, isStreamed) => {
    test.each<[string, ScriptedResponse, Omit<Read, 'tokens' | 'finish'>]>([
      ['words', { parts: [{ text: ['Hel', 'lo'] }] }, { text: 'Hello', thoughts: '', calls: [] }],
      [
        'words, sent byte by byte',
        { parts: [{ text: '⏳ héllo' }], pace: { intervalMs: 0, bytes: 7 } },
        { text: '⏳ héllo', thoughts: '', calls: [] },
      ],
      [
        'calls, one without arguments',
        {
          parts: [
            { text: 'Look.' },
            { call: 'read', id: 'c1', arguments: ['{"path"', ':"a"}'] },
            { call: 'list', id: 'c2' },
          ],
        },
        {
          text: 'Look.',
          thoughts: '',
          calls: [
            { id: 'c1', name: 'read', input: { path: 'a' } },
            { id: 'c2', name: 'list', input: {} },
          ],
        },
      ],
      [
        'thoughts, shown and hidden',
        { parts: [{ thinking: ['Let me ', 'think.'] }, { redacted: 'xyz' }, { text: 'Done.' }] },
        { text: 'Done.', thoughts: format === 'chat' ? '' : 'Let me think.', calls: [] },
      ],
      [
        'words around a search of its own',
        { parts: [{ text: 'Let me ' }, { search: 'x' }, { text: 'see.' }] },
        { text: 'Let me see.', thoughts: '', calls: [] },
      ],
      [
        'a reply that is too long',
        { parts: [{ text: 'Cut' }], finish: 'length' },
        { text: 'Cut', thoughts: '', calls: [] },
      ],
    ])('reads %s', async (__, answer, expected) => {
      await using provider = await startLoopbackProvider({ script: [{ ...answer, usage }] });
      const read = await readers[format](provider, isStreamed);
      const finish = answer.finish ?? (expected.calls.length > 0 ? 'tool-use' : 'stop');
      expect(read).toEqual({ ...expected, finish: finishes[format][finish], tokens: [12, 34] });
    });
  });

  test('reads a refusal, an overload and an overload in mid-stream as errors', async () => {
    const script: ScriptedResponse[] = [
      { status: 400, message: 'No.' },
      { status: 529 },
      { parts: [{ text: 'Hi' }, { overloaded: true }] },
    ];
    await using provider = await startLoopbackProvider({ script });
    await expect(readers[format](provider, true)).rejects.toMatchObject({ status: 400 });
    await expect(readers[format](provider, false)).rejects.toMatchObject({ status: 529 });
    await expect(readers[format](provider, true)).rejects.toThrow(/overloaded/i);
  });
});

// A bot that stores model messages: the messages that a turn adds, with the real `ai` package, majors 5 to 7, and the
// strict provider.
import { CancellationToken } from '@whoa/core';
import { flushMicrotasks } from '@whoa/core/testing';
import {
  convertToModelMessages,
  type ModelMessage,
  streamText,
  type ToolSet,
  tool,
  toUIMessageStream,
  type UIMessage,
} from 'ai';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { aiVersions, type TurnInput } from '../../../../test/ai-sdk/ai-versions.ts';
import { aiSdkModel, formats } from '../../../../test/ai-sdk/providers.ts';
import { createCallRecords, createStoppableTurn } from '../index.ts';
import { type ScriptedResponse, startLoopbackProvider } from '../testing/index.ts';

const say = (content: string): ModelMessage => ({ role: 'user', content });
const answer: ScriptedResponse = { parts: [{ text: 'I see.' }] };
const stalls = { stall: true } as const;
const versions = aiVersions.flatMap((version) => formats.map((format) => [version.major, format, version] as const));
const accepted = (requests: readonly { readonly refusal: unknown }[]) => requests.map(({ refusal }) => refusal);

/** A tool that ignores its signal until it is released. */
function deaf() {
  const started = Promise.withResolvers<void>();
  const held = Promise.withResolvers<string>();
  let times = 0;
  const execute = () => {
    times++;
    started.resolve();
    return held.promise;
  };
  return { execute, started: started.promise, release: held.resolve, times: () => times };
}

describe.each(versions)('ai %i, %s', (_, format, version) => {
  test('a turn that was not stopped adds the messages of its loop', async () => {
    const parts = [{ thinking: 'Hm.' }, { text: 'One.' }, { call: 'fast', id: 'c1', input: { at: 1 } }] as const;
    const again = { parts: [{ call: 'fast', id: 'c2', input: { at: 2 } }] } as const;
    await using provider = await startLoopbackProvider({ script: [{ parts }, again, answer] });
    using token = new CancellationToken();
    const base = { url: provider.url, format, calls: createCallRecords(), slow: () => '', fast: () => ({ found: 1 }) };
    const { settled, own } = await version.streamBot({ ...base, history: [say('Go')], token });
    expect(own).toHaveLength(5);
    expect(settled.messages).toEqual(own);
    expect(Object.isFrozen(settled.messages)).toBe(true);
  });

  test('a turn that was stopped in a call keeps its text and calls, and the next turn reports how they ended', async () => {
    const both: ScriptedResponse = {
      parts: [{ text: 'Both.' }, { call: 'slow', id: 'c1' }, { call: 'fast', id: 'c2' }],
    };
    await using provider = await startLoopbackProvider({ script: [both, answer] });
    const { execute, started, release } = deaf();
    const ended = Promise.withResolvers<void>();
    const fast = () => {
      ended.resolve();
      return 'found';
    };
    const base = { url: provider.url, format, calls: createCallRecords(), slow: execute, fast };
    const history = [say('Go')];
    using token = new CancellationToken();
    const ending = version.streamBot({ ...base, history, token });
    await Promise.all([started, ended.promise]);
    token.cancel({ kind: 'user' }, { mode: { abortMs: 30 } });
    const { settled } = await ending;
    expect(settled.messages).toMatchObject([
      { role: 'assistant', content: [{ text: 'Both.' }, { toolCallId: 'c1' }, { toolCallId: 'c2' }] },
      {
        role: 'tool',
        content: [
          { toolCallId: 'c1', output: { value: expect.stringMatching(/^Outcome unknown/) as string } },
          { toolCallId: 'c2', output: { type: 'text', value: 'found' } },
        ],
      },
    ]);
    release('mail sent');
    await flushMicrotasks();
    using next = new CancellationToken();
    const stored = JSON.parse(JSON.stringify([...history, ...settled.messages, say('And?')])) as unknown[];
    await version.streamBot({ ...base, history: stored, token: next });
    expect(accepted(provider.requests)).toEqual([undefined, undefined]);
    for (const words of ['Both.', 'still finished later: mail sent'])
      expect(JSON.stringify(provider.requests[1]!.body)).toContain(words);
  });

  test.each<[string, ScriptedResponse, string]>([
    ['text', { parts: [{ thinking: 'Hm.' }, { text: ['Once ', stalls, 'upon'] }] }, 'text-delta'],
    ['a thought', { parts: [{ thinking: ['Hm', stalls] }] }, 'reasoning-delta'],
    [
      'the call of a tool',
      { parts: [{ text: 'One.' }, { call: 'fast', arguments: ['{"a', stalls] }] },
      'tool-input-delta',
    ],
  ])('a turn that was stopped in %s adds what can be sent again', async (_part, cut, type) => {
    await using provider = await startLoopbackProvider({ script: [cut, answer] });
    const base = { url: provider.url, format, calls: createCallRecords(), slow: () => '', fast: () => '' };
    using token = new CancellationToken();
    const onPart = (seen: string) => {
      if (seen === type) token.cancel({ kind: 'user' });
    };
    // Chat Completions has no thinking: its reply is stopped before any text is shown.
    const ending = version.streamBot({ ...base, history: [say('Go')], token, onPart });
    if (format === 'chat') {
      await provider.waitForRequest(0);
      token.cancel({ kind: 'user' });
    }
    const { settled } = await ending;
    if (format !== 'chat') {
      const texts = { 'text-delta': ['Once '], 'reasoning-delta': [], 'tool-input-delta': ['One.'] }[type]!;
      const shown = settled.messages.flatMap(({ content }) => content as { type: string; text?: string }[]);
      expect(shown.flatMap(({ type: kind, text }) => (kind === 'text' ? [text] : []))).toEqual(texts);
      expect(JSON.stringify(shown)).not.toContain('tool-call');
    }
    using next = new CancellationToken();
    await version.streamBot({ ...base, history: [say('Go'), ...settled.messages, say('And?')], token: next });
    expect(accepted(provider.requests)).toEqual([undefined, undefined]);
  });
});

const asking = versions.filter(([major]) => major !== 5);

describe.each(asking)('ai %i, %s: a call that needs an approval', (_, format, version) => {
  type Part = { readonly type: string; readonly approvalId?: string; readonly approved?: boolean };
  const yes = (messages: readonly { content: unknown }[], approved = true) => {
    const request = messages.flatMap(({ content }) => content as Part[]).find(({ type }) => type.endsWith('-request'))!;
    return { role: 'tool', content: [{ type: 'tool-approval-response', approvalId: request.approvalId, approved }] };
  };

  async function setUp(provider: { url: string }, id = 'c1') {
    const slow = deaf();
    const base: Omit<TurnInput, 'history' | 'token'> = {
      url: provider.url,
      format,
      calls: createCallRecords(),
      slow: slow.execute,
      fast: () => '',
      needsApproval: true,
    };
    using token = new CancellationToken();
    const { settled, own } = await version.streamBot({ ...base, history: [say('Pay')], token });
    expect(settled.messages).toHaveLength(1);
    if (id === 'c1') expect(settled.messages).toEqual(own);
    // A caller may store the loop's own messages, with an id that providers reject.
    return { ...slow, base, asked: [say('Pay'), ...own!], answer: yes(settled.messages) };
  }

  const asks = (id: string): ScriptedResponse => ({ parts: [{ text: 'May I?' }, { call: 'slow', id }] });

  test.each(['c1', 'functions.slow:0'])(
    'a call stays open until it is answered; after a stop its result is part of what the turn added (%s)',
    async (id) => {
      await using provider = await startLoopbackProvider({ script: [asks(id), answer] });
      const { base, asked, answer: approved, started, release, times } = await setUp(provider, id);
      using token = new CancellationToken();
      const ending = version.streamBot({ ...base, history: [...asked, approved], token });
      await started;
      token.cancel({ kind: 'user' }, { mode: 'now' });
      release('paid');
      const { settled } = await ending;
      expect(settled.messages).toEqual([
        {
          role: 'tool',
          content: [{ type: 'tool-result', toolCallId: id, toolName: 'slow', output: { type: 'text', value: 'paid' } }],
        },
      ]);
      using next = new CancellationToken();
      const stored = [...asked, approved, ...settled.messages, say('Paid?')];
      // With empty records: the stored messages suffice.
      await version.streamBot({ ...base, calls: createCallRecords(), history: stored, token: next });
      expect(JSON.stringify(provider.requests.at(-1)!.body)).toContain('paid');
      expect(times()).toBe(1);
      expect(accepted(provider.requests)).toEqual([undefined, undefined]);
    },
  );

  test('a call that was not stopped adds its result once, before the reply', async () => {
    await using provider = await startLoopbackProvider({ script: [asks('c1'), answer, answer] });
    const { base, asked, answer: approved, release, times } = await setUp(provider);
    release('paid');
    using token = new CancellationToken();
    const { settled } = await version.streamBot({ ...base, history: [...asked, approved], token });
    expect(settled.messages.map(({ role }) => role)).toEqual(['tool', 'assistant']);
    using next = new CancellationToken();
    const stored = [...asked, approved, ...settled.messages, say('Thanks')];
    await version.streamBot({ ...base, calls: createCallRecords(), history: stored, token: next });
    expect(times()).toBe(1);
    expect(accepted(provider.requests)).toEqual([undefined, undefined, undefined]);
    expect(JSON.stringify(provider.requests[2]!.body)).toContain('paid');
  });

  test('a call that was denied, or stopped before it began, did not start', async () => {
    await using provider = await startLoopbackProvider({ script: [asks('c1'), answer, answer] });
    const { base, asked, answer: approved, times } = await setUp(provider);
    using token = new CancellationToken();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const stopped = await version.streamBot({ ...base, history: [...asked, approved], token });
    expect(JSON.stringify(stopped.settled.messages)).toMatch(/^\[\{"role":"tool".*Not started: /);
    using next = new CancellationToken();
    const denied = await version.streamBot({
      ...base,
      history: [...asked, yes(asked.slice(1) as never, false)],
      token: next,
    });
    expect(denied.settled.messages.map(({ role }) => role)).toEqual(['tool', 'assistant']);
    expect(times()).toBe(0);
    expect(accepted(provider.requests)).toEqual([undefined, undefined]);
  });
});

describe.each(versions)('ai %i, %s: generateText', (_, format, version) => {
  test('adds the messages of its steps, and of one that was stopped its calls', async () => {
    const both: ScriptedResponse = {
      parts: [{ text: 'Both.' }, { call: 'slow', id: 'c1' }, { call: 'fast', id: 'c2' }],
    };
    await using provider = await startLoopbackProvider({ script: [{ parts: [{ call: 'fast', id: 'c0' }] }, both] });
    const { execute, started } = deaf();
    const base = { url: provider.url, format, calls: createCallRecords(), slow: execute, fast: () => 'found' };
    using token = new CancellationToken();
    const history = [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Go' }] }];
    const ending = version.generate({ ...base, history, token });
    await started;
    token.cancel({ kind: 'user' }, { mode: { abortMs: 30 } });
    const { messages } = await ending;
    expect(messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant', 'tool']);
    expect(JSON.stringify(messages.slice(0, 2))).toMatch(/c0.*found/);
    expect(JSON.stringify(messages.slice(2))).toMatch(/c1.*c2.*Outcome unknown/);
  });
});

describe('ai 7', () => {
  const model = (url: string) => aiSdkModel('anthropic', url) as Parameters<typeof streamText>[0]['model'];
  const picture = { type: 'text', value: 'a picture' } as const;

  test.each([true, false])(
    'a tool’s model output is kept, unless the caller’s own hook hides it (%s)',
    async (isOurs) => {
      const asks: ScriptedResponse = { parts: [{ text: 'Look.' }, { call: 'draw', id: 'c1' }] };
      await using provider = await startLoopbackProvider({ script: [asks, answer] });
      const draw = tool({ inputSchema: z.object({}), execute: () => ({ raw: 1 }), toModelOutput: () => picture });
      using token = new CancellationToken();
      const turn = createStoppableTurn({
        history: [say('Go')],
        tools: { draw },
        calls: createCallRecords(),
        token,
      });
      await streamText({
        model: model(provider.url),
        ...turn,
        ...(!isOurs && { onStepEnd: () => {} }),
      }).consumeStream();
      const { messages } = await turn.settled;
      expect(messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant']);
      expect(messages[1]!.content).toMatchObject([{ output: isOurs ? picture : { type: 'json', value: { raw: 1 } } }]);
    },
  );

  test('a tool’s model output is kept after an approval, too', async () => {
    await using provider = await startLoopbackProvider({ script: [{ parts: [{ call: 'draw', id: 'c1' }] }, answer] });
    const execute = () => ({ raw: 1 });
    const draw = tool({ inputSchema: z.object({}), execute, toModelOutput: () => picture });
    const toolApproval = { draw: 'user-approval' } as const;
    const calls = createCallRecords();
    const history = [say('Go')];
    const take = async () => {
      using token = new CancellationToken();
      const turn = createStoppableTurn({ history, tools: { draw }, calls, token });
      await streamText({ model: model(provider.url), ...turn, toolApproval }).consumeStream();
      history.push(...(await turn.settled).messages);
    };
    await take();
    const [, asked] = history;
    const request = (asked!.content as { approvalId: string }[]).find((part) => 'approvalId' in part)!;
    const { approvalId } = request;
    history.push({ role: 'tool', content: [{ type: 'tool-approval-response', approvalId, approved: true }] });
    await take();
    expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    expect(history[3]!.content).toMatchObject([{ toolCallId: 'c1', output: picture }]);
  });

  test.each(['page', 'bot'])(
    'a call that the loop approves by itself runs once if its cut turn is sent again (%s)',
    async (kind) => {
      const asks: ScriptedResponse = { parts: [{ text: 'Paying.' }, { call: 'slow', id: 'c1', input: { eur: 5 } }] };
      await using provider = await startLoopbackProvider({ script: [asks, answer, answer] });
      const { execute, started, release, times } = deaf();
      const tools = { slow: tool({ inputSchema: z.object({ eur: z.number() }), execute }) };
      const calls = createCallRecords();
      const take = async (page: UIMessage[], token: CancellationToken) => {
        const turn = createStoppableTurn({ history: await convertToModelMessages(page), tools, calls, token });
        const toolApproval = { slow: 'approved' } as const;
        const { stream } = streamText({ model: model(provider.url), ...turn, toolApproval });
        let after = page;
        const onEnd = ({ messages }: { messages: UIMessage[] }) => void (after = messages);
        await toUIMessageStream({ stream, originalMessages: page, onEnd }).pipeTo(new WritableStream());
        return { page: after, ...(await turn.settled) };
      };
      using token = new CancellationToken();
      const ending = take([{ id: '1', role: 'user', parts: [{ type: 'text', text: 'Pay' }] }], token);
      await started;
      token.cancel({ kind: 'user' }, { mode: 'now' });
      release('paid');
      const cut = await ending;
      expect(cut.messages.map(({ role }) => role)).toEqual(['assistant', 'tool']);
      expect(JSON.stringify(cut.messages)).toMatch(/"value":"paid"/);
      using again = new CancellationToken();
      if (kind === 'page') await take(cut.page, again);
      else {
        const history = [say('Pay'), ...cut.messages];
        const turn = createStoppableTurn({ history, tools, calls, token: again });
        await streamText({ model: model(provider.url), ...turn }).consumeStream();
      }
      expect(times()).toBe(1);
      expect(accepted(provider.requests)).toEqual([undefined, undefined]);
      expect(JSON.stringify(provider.requests[1]!.body)).toMatch(/"paid"/);
    },
  );

  test('a call that a page answers stays open next to one that was stopped, and one of an unknown tool is rejected', async () => {
    const asks: ScriptedResponse = {
      parts: [
        { call: 'confirm', id: 'c1' },
        { call: 'slow', id: 'c2' },
        { call: 'invented', id: 'c3' },
      ],
    };
    await using provider = await startLoopbackProvider({ script: [asks, answer] });
    const { execute, started } = deaf();
    const tools = {
      confirm: tool({ inputSchema: z.object({}) }) as ToolSet[string],
      slow: tool({ inputSchema: z.object({}), execute }),
    };
    const calls = createCallRecords();
    using token = new CancellationToken();
    const turn = createStoppableTurn({ history: [say('Go')], tools, calls, token });
    const reading = streamText({ model: model(provider.url), ...turn }).consumeStream();
    await started;
    token.cancel({ kind: 'user' }, { mode: { abortMs: 30 } });
    await reading;
    const { messages } = await turn.settled;
    const results = messages.flatMap(({ role, content }) =>
      role === 'tool' ? (content as { toolCallId: string }[]) : [],
    );
    expect(results).toMatchObject([
      { toolCallId: 'c3', output: { value: expect.stringMatching(/unavailable tool 'invented'/) as string } },
      { toolCallId: 'c2', output: { value: expect.stringMatching(/^Outcome unknown/) as string } },
    ]);
    using next = new CancellationToken();
    const yes = {
      type: 'tool-result',
      toolCallId: 'c1',
      toolName: 'confirm',
      output: { type: 'text', value: 'yes' },
    } as const;
    const history: ModelMessage[] = [say('Go'), ...messages, { role: 'tool', content: [yes] }];
    const second = createStoppableTurn({ history, tools, calls, token: next });
    await streamText({ model: model(provider.url), ...second }).consumeStream();
    expect(accepted(provider.requests)).toEqual([undefined, undefined]);
    expect(JSON.stringify(provider.requests[1]!.body)).toMatch(/"yes"/);
  });
});

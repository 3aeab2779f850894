// One turn of the real `ai` package, majors 5 to 7, against the strict loopback provider.
import { CancellationToken } from '@whoa/core';
import { flushMicrotasks } from '@whoa/core/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { aiVersions, type TurnInput } from '../../../../test/ai-sdk/ai-versions.ts';
import { formats } from '../../../../test/ai-sdk/providers.ts';
import { measureSlowness } from '../../../../test/slowness.ts';
import { createCallRecords } from '../index.ts';
import { type ScriptedResponse, startLoopbackProvider } from '../testing/index.ts';

const mode = { abortMs: 30 };
const say = (text: string) => ({ id: text, role: 'user', parts: [{ type: 'text', text }] });
const bothCalls: ScriptedResponse = {
  parts: [{ text: 'Both.' }, { call: 'slow', id: 'c1' }, { call: 'fast', id: 'c2' }],
};
const answer: ScriptedResponse = { parts: [{ text: 'I see.' }] };

/** A tool that ignores its signal until the test releases it, and one that returns immediately. */
function tools() {
  const started = Promise.withResolvers<void>();
  const held = Promise.withResolvers<string>();
  const fastEnded = Promise.withResolvers<void>();
  return {
    slow: () => {
      started.resolve();
      return held.promise;
    },
    fast: () => {
      fastEnded.resolve();
      return 'fast result';
    },
    release: held.resolve,
    running: Promise.all([started.promise, fastEnded.promise]),
  };
}

const versions = aiVersions.flatMap((version) => formats.map((format) => [version.major, format, version] as const));

describe.each(versions)('ai %i, %s', (_, format, version) => {
  test('a tool that ignores its signal: settled when the ladder ends, fenced, and the next turn has an accurate history', async () => {
    await using provider = await startLoopbackProvider({ script: [bothCalls, answer] });
    const { release, running, ...executors } = tools();
    const calls = createCallRecords();
    const base: Omit<TurnInput, 'history' | 'token'> = { url: provider.url, format, calls, ...executors };
    using token = new CancellationToken();
    const ending = version.stream({ ...base, history: [say('Go')], token });
    await running;
    token.cancel({ kind: 'user' }, { mode });
    const first = await ending;
    expect(first.settled).toMatchObject({
      reason: { kind: 'user' },
      calls: [
        { tool: 'slow', state: 'unknown' },
        { tool: 'fast', state: 'finished', output: 'fast result' },
      ],
    });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
    release('mail sent');
    await flushMicrotasks();
    expect(first.settled.calls[0]).not.toHaveProperty('late');
    expect(calls.find('c1')).toMatchObject({ state: 'unknown', late: { value: 'mail sent' } });
    using next = new CancellationToken();
    const second = await version.stream({ ...base, history: [...first.history, say('And?')], token: next });
    expect(provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    const sent = JSON.stringify(provider.requests[1]!.body);
    for (const words of ['Both.', 'fast result', 'still finished later: mail sent']) expect(sent).toContain(words);
    expect(JSON.stringify(second.history.at(-1))).toContain('I see.');
    expect(second.settled).toMatchObject({ calls: [], messages: [{ role: 'assistant' }] });
    expect(next.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('a turn waits for a tool that must finish, and its result is kept', async () => {
    await using provider = await startLoopbackProvider({ script: [bothCalls, answer] });
    const { release, running, ...executors } = tools();
    using token = new CancellationToken();
    const calls = createCallRecords();
    const mustFinish = { slow: { timeoutMs: 10_000 } };
    const base = { url: provider.url, format, calls, ...executors, mustFinish };
    const ending = version.stream({ ...base, history: [say('Go')], token });
    await running;
    token.cancel({ kind: 'user' }, { mode });
    release('charged');
    const { settled, history } = await ending;
    expect(settled.calls[0]).toMatchObject({ tool: 'slow', state: 'finished', output: 'charged' });
    using next = new CancellationToken();
    await version.stream({ ...base, history: [...history, say('And?')], token: next });
    expect(provider.requests[1]).toMatchObject({ refusal: undefined });
    expect(JSON.stringify(provider.requests[1]!.body)).toContain('charged');
  });

  test('a reply is never waited for: a graceful cancel closes it immediately', async () => {
    const pause: ScriptedResponse = { parts: [{ text: ['Once upon', { stall: true }] }] };
    await using provider = await startLoopbackProvider({ script: [pause] });
    const { release: _release, running: _running, ...executors } = tools();
    using token = new CancellationToken();
    const base = { url: provider.url, format, calls: createCallRecords(), ...executors };
    const ending = version.stream({ ...base, history: [say('Go')], token });
    await provider.waitForRequest(0);
    const cancelledAt = performance.now();
    token.cancel({ kind: 'user' }, { mode: 'graceful' });
    expect((await ending).settled).toMatchObject({ reason: { kind: 'user' }, calls: [] });
    expect(performance.now() - cancelledAt).toBeLessThan(5_000 * measureSlowness());
  });

  test('generateText settles when the ladder ends', async () => {
    await using provider = await startLoopbackProvider({ script: [bothCalls] });
    const { running, slow, fast } = tools();
    using token = new CancellationToken();
    const calls = createCallRecords();
    const ending = version.generate({ url: provider.url, format, calls, slow, fast, history: [say('Go')], token });
    await running;
    token.cancel({ kind: 'user' }, { mode });
    expect(await ending).toMatchObject({
      reason: { kind: 'user' },
      calls: [{ state: 'unknown' }, { state: 'finished' }],
    });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });
});

/** Answers the question about the last call, as a page does. */
function approve(history: readonly unknown[], approved = true): unknown[] {
  const [last, ...before] = history.toReversed() as { parts: { state?: string; approval?: object }[] }[];
  const parts = last!.parts.map((part) =>
    part.state === 'approval-requested'
      ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved } }
      : part,
  );
  return [...before.toReversed(), { ...last, parts }];
}

const asking = versions.filter(([major]) => major !== 5);

describe.each(asking)('ai %i, %s: a call that a person approved', (_, format, version) => {
  const asks: ScriptedResponse = { parts: [{ text: 'May I?' }, { call: 'slow', id: 'c1' }] };

  test.each(['graceful', 'now', 'kill'] as const)(
    'an approved call that was stopped (%s) is reported in the next turn, and runs once no matter how often its history is sent',
    async (mode) => {
      await using provider = await startLoopbackProvider({ script: [asks, answer, answer] });
      const { release, running: _running, ...executors } = tools();
      let started = 0;
      const underWay = Promise.withResolvers<void>();
      const slow = () => {
        started++;
        underWay.resolve();
        return executors.slow();
      };
      const calls = createCallRecords();
      const base = { url: provider.url, format, calls, fast: executors.fast, slow, needsApproval: true };
      using first = new CancellationToken();
      const { history } = await version.stream({ ...base, history: [say('Pay')], token: first });
      expect(started).toBe(0);
      const approved = approve(history);
      using token = new CancellationToken();
      const ending = version.stream({ ...base, history: approved, token });
      await underWay.promise;
      token.cancel({ kind: 'user' }, { mode });
      if (mode !== 'kill') release('paid');
      const cut = await ending;
      expect(provider.requests).toHaveLength(1);
      release('paid');
      await flushMicrotasks();
      for (const again of [approved, [...cut.history, say('Was it paid?')]]) {
        using next = new CancellationToken();
        await version.stream({ ...base, history: again, token: next });
        expect(JSON.stringify(provider.requests.at(-1)!.body)).toMatch(mode === 'kill' ? /later: paid/ : /"paid"/);
      }
      expect(started).toBe(1);
      expect(provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
    },
  );

  test.each([
    ['functions.slow:0', true],
    ['functions.slow:0', false],
    ['c1', true],
  ])('under the id %s reaches the page under it (approved: %s)', async (id, approved) => {
    const asksForNextCall = { parts: [{ text: 'May I?' }, { call: 'slow', id }] };
    await using provider = await startLoopbackProvider({ script: [asksForNextCall, answer, asksForNextCall, answer] });
    const base = { url: provider.url, format, calls: createCallRecords(), slow: () => 'paid', fast: () => '' };
    let history: readonly unknown[] = [];
    // The second time, the id comes again.
    for (const words of ['Pay', 'Pay again']) {
      for (const asked of [() => [...history, say(words)], () => approve(history, approved)]) {
        using token = new CancellationToken();
        const end = await version.stream({ ...base, needsApproval: true, history: asked(), token });
        ({ history } = end);
        expect(end.seen).not.toContain('error');
      }
      const { parts } = history.at(-1) as { parts: { toolCallId?: string; state?: string; output?: unknown }[] };
      const state = approved ? { state: 'output-available', output: 'paid' } : { state: 'output-denied' };
      expect(parts.find(({ toolCallId }) => toolCallId === id)).toMatchObject(state);
    }
    expect(provider.requests.map(({ refusal }) => refusal)).toEqual(Array(4).fill(undefined));
  });
});

const searching = versions.filter(([, format]) => format !== 'chat');

describe.each(searching)('ai %i, %s: stopped while the vendor searches the web', (_, format, version) => {
  const { slow, fast } = tools();
  // Not every version sends OpenAI the results of its searches; one of them logs a warning about it.
  const settings = globalThis as { AI_SDK_LOG_WARNINGS?: boolean };
  beforeAll(() => void (settings.AI_SDK_LOG_WARNINGS = false));
  afterAll(() => void delete settings.AI_SDK_LOG_WARNINGS);

  const stalls = { stall: true } as const;

  test.each<[string, ScriptedResponse, string, number]>([
    ['before its result', { parts: [{ text: 'Hm.' }, { search: 'x', fault: stalls }] }, 'tool-input-available', 1],
    ['after a thought', { parts: [{ thinking: 'Hm.' }, { search: 'x', fault: stalls }] }, 'tool-input-available', 1],
    [
      'before the words after it',
      { parts: [{ thinking: 'Hm.' }, { search: 'x' }, { text: ['', stalls] }] },
      'tool-output-available',
      1,
    ],
    [
      'the second time',
      { parts: [{ text: 'Hm.' }, { search: 'x' }, { thinking: 'Hm.' }, { search: 'y', fault: stalls }] },
      'tool-input-available',
      2,
    ],
  ])('%s, the next turn is accepted', async (_when, cut, type, times) => {
    await using provider = await startLoopbackProvider({ script: [cut, answer] });
    const base = { url: provider.url, format, calls: createCallRecords(), slow, fast, canSearch: true };
    using token = new CancellationToken();
    let seen = 0;
    const onPart = (shown: string) => {
      if (shown === type && ++seen === times) token.cancel({ kind: 'user' }, { mode: 'now' });
    };
    const { history, settled } = await version.stream({ ...base, history: [say('Go')], onPart, token });
    expect(settled).toMatchObject({ reason: { kind: 'user' }, calls: [] });
    expect(JSON.stringify(history)).toContain('web_search');
    using next = new CancellationToken();
    const second = await version.stream({ ...base, history: [...history, say('And?')], token: next });
    expect(provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined]);
    expect(JSON.stringify(second.history.at(-1))).toContain('I see.');
  });
});

describe.each(aiVersions.map((version) => [version.major, version] as const))('ai %i', (_, version) => {
  const format = 'anthropic';

  test('stopped mid-text: the text is kept and the connection is closed', async () => {
    const words: ScriptedResponse = { parts: [{ text: ['Once ', 'upon ', { stall: true }, 'a time'] }] };
    await using provider = await startLoopbackProvider({ script: [words, answer] });
    const { slow, fast } = tools();
    using token = new CancellationToken();
    const calls = createCallRecords();
    const base = { url: provider.url, format, calls, slow, fast } as const;
    const shown = Promise.withResolvers<void>();
    const onPart = (type: string) => type === 'text-delta' && shown.resolve();
    const ending = version.stream({ ...base, history: [say('Go')], onPart, token });
    await shown.promise;
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const { settled, history, seen } = await ending;
    expect(settled).toMatchObject({ reason: { kind: 'user' }, calls: [] });
    expect(seen.at(-1)).toBe('abort');
    expect(await provider.requests[0]!.waitForClose()).toBe('client');
    using next = new CancellationToken();
    await version.stream({ ...base, history: [...history, say('And?')], token: next });
    expect(JSON.stringify(provider.requests[1]!.body)).toContain('Once ');
  });

  test('cancelled before it starts: nothing is sent, and it settles', async () => {
    await using provider = await startLoopbackProvider({ script: [] });
    const { slow, fast } = tools();
    using token = new CancellationToken();
    token.cancel({ kind: 'user' }, { mode: 'now' });
    const base = {
      url: provider.url,
      format,
      calls: createCallRecords(),
      slow,
      fast,
      history: [say('Go')],
      token,
    } as const;
    expect((await version.stream(base)).settled).toMatchObject({ reason: { kind: 'user' }, calls: [] });
    expect(await version.generate(base)).toMatchObject({ reason: { kind: 'user' }, calls: [] });
    expect(provider.requests).toHaveLength(0);
  });

  test('a drain lets the call under way finish and asks the model for nothing more', async () => {
    await using provider = await startLoopbackProvider({ script: [bothCalls] });
    const { release, running, slow, fast } = tools();
    using token = new CancellationToken();
    const input = {
      url: provider.url,
      format,
      calls: createCallRecords(),
      slow,
      fast,
      history: [say('Go')],
      token,
    } as const;
    const ending = version.stream(input);
    await running;
    token.cancel({ kind: 'user' });
    token.cancel({ kind: 'shutdown' });
    release('done');
    const { settled } = await ending;
    expect(settled).toMatchObject({ reason: { kind: 'user' }, calls: [{ output: 'done' }, { state: 'finished' }] });
    expect(provider.requests).toHaveLength(1);
  });

  test('a provider that fails ends the turn too', async () => {
    await using provider = await startLoopbackProvider({ script: [{ status: 500 }, { status: 500 }] });
    const { slow, fast } = tools();
    using token = new CancellationToken();
    const input = {
      url: provider.url,
      format,
      calls: createCallRecords(),
      slow,
      fast,
      history: [say('Go')],
      token,
    } as const;
    expect((await version.stream(input)).settled).toEqual({ calls: [], messages: [] });
    expect(await version.generate(input)).toEqual({ calls: [], messages: [] });
    expect(token.statistics).toEqual({ children: 0, listeners: 0 });
  });

  test('a provider that counts its calls again in every step is sent each id once, with its own result', async () => {
    const step = (at: number): ScriptedResponse => ({ parts: [{ call: 'fast', id: 'call_0', input: { at } }] });
    await using provider = await startLoopbackProvider({ script: [step(1), step(2), answer] });
    using token = new CancellationToken();
    const { settled } = await version.stream({
      url: provider.url,
      format,
      calls: createCallRecords(),
      slow: () => 'never',
      fast: ({ at }) => `result ${at}`,
      history: [say('Go')],
      token,
    });
    expect(settled.calls.map(({ output }) => output)).toEqual(['result 1', 'result 2']);
    expect(provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
    const sent = JSON.stringify(provider.requests[2]!.body);
    expect(sent).toMatch(/"call_0".*result 1.*"call_0-2".*result 2/);
  });
});

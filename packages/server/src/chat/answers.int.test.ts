// Approvals and tools that run in the page, as the real `useChat` sends them, with `streamText` and a strict provider.
/* oxlint-disable typescript/no-deprecated -- what applications have */

import { createOpenAI } from '@ai-sdk/openai';
import { Chat } from '@ai-sdk/react';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createTaskStore } from '@whoa/tasks';
import {
  type ChatInit,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  streamText,
  tool,
  type UIMessage,
} from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openDatabase } from '../../../../test/server/app-database.ts';
import { type BorrowedServer, borrowPostgres } from '../../../../test/servers/borrow.ts';
import type { ApproverOptions } from '../http/access/approvers.ts';
import { createChatHandler } from './chat-handler.ts';
import type { ChatStopReceipt } from './chat-types.ts';
import { StoppableChatTransport } from './client/stoppable-chat-transport.ts';

const PAY: ScriptedResponse = { parts: [{ text: 'May I? ' }, { call: 'pay', id: 'p1', input: { eur: 5 } }] };
const PAY_MORE: ScriptedResponse = { parts: [{ text: 'More? ' }, { call: 'pay', id: 'p2', input: { eur: 6 } }] };
const LOCATE: ScriptedResponse = { parts: [{ text: 'Where? ' }, { call: 'locate', id: 'l1', input: {} }] };
const DONE: ScriptedResponse = { parts: [{ text: 'Done.' }] };

let chats = 0;

interface Loop {
  readonly pay?: () => unknown;
  /** The loop asks, and not the tool. */
  readonly isLoopAsking?: boolean;
  /** The application's own database keeps the chats. */
  readonly isTheirs?: boolean;
  readonly rules?: ApproverOptions;
}

async function openSite(
  url: string | undefined,
  script: readonly ScriptedResponse[],
  { pay = () => 'paid', isLoopAsking = false, isTheirs = false, rules }: Loop,
) {
  const id = `c${++chats}`;
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createTaskStore(url ?? 'memory:');
  const paid: unknown[] = [];
  const audited: string[] = [];
  const tools = {
    pay: tool({
      inputSchema: z.object({ eur: z.number() }),
      needsApproval: !isLoopAsking,
      execute: (input) => {
        paid.push(input);
        return pay();
      },
    }),
    locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
  };
  const database = isTheirs ? openDatabase() : undefined;
  const createHandler = () =>
    createChatHandler({
      store,
      ...(database && { history: database.history }),
      authenticate: (request) => request.headers.get('x-user'),
      audit: ({ type, target, result }) => audited.push(`${type} ${target} ${result}`),
      ...rules,
      tools,
      reply: (turn) => {
        const model = createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o');
        return streamText({ model, ...turn, ...(isLoopAsking && { toolApproval: { pay: 'user-approval' } }) });
      },
    });
  let handler = createHandler();
  const requests: string[] = [];
  const ask = (path: string, init: RequestInit = {}) => {
    requests.push(`${init.method ?? 'GET'} ${path}`);
    return handler.fetch(new Request(`http://app.test/api/chat${path}`, init));
  };
  const headers = { 'x-user': 'ada', 'content-type': 'application/json' };
  return {
    id,
    provider,
    store,
    paid,
    audited,
    requests,
    /** The last request to the model. */
    told: () => JSON.stringify(provider.requests.at(-1)!.body),
    refusals: () => provider.requests.map(({ refusal }) => refusal),
    async deploy() {
      await handler[Symbol.asyncDispose]();
      handler = createHandler();
    },
    /** A page: the chat of the real `useChat`, which sends answers by itself. */
    async open(more: Pick<ChatInit<UIMessage>, 'onToolCall'> = {}) {
      const transport = new StoppableChatTransport({
        api: 'http://app.test/api/chat',
        headers: { 'x-user': 'ada' },
        fetch: ((url: string, init: RequestInit) =>
          ask(url.slice('http://app.test/api/chat'.length), init)) as typeof fetch,
      });
      const messages = (await (await ask(`/${id}/messages`, { headers })).json()) as UIMessage[];
      const chat = new Chat({
        id,
        transport,
        messages,
        sendAutomaticallyWhen: (state) =>
          lastAssistantMessageIsCompleteWithApprovalResponses(state) ||
          lastAssistantMessageIsCompleteWithToolCalls(state),
        ...more,
      });
      return { chat, transport };
    },
    async stored(): Promise<UIMessage[]> {
      return (await (await ask(`/${id}/messages`, { headers })).json()) as UIMessage[];
    },
    async stop(body: object = {}): Promise<ChatStopReceipt> {
      const response = await ask(`/${id}/stop`, { method: 'POST', headers, body: JSON.stringify(body) });
      return (await response.json()) as ChatStopReceipt;
    },
    post: (body: object, who: object = {}) =>
      ask('', { method: 'POST', headers: { ...headers, ...who }, body: JSON.stringify({ id, ...body }) }),
    async [Symbol.asyncDispose]() {
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      database?.[Symbol.dispose]();
      await provider.close();
    },
  };
}

const findCalls = (message: UIMessage | undefined) => (message?.parts ?? []).filter(isToolUIPart);
const words = (message: UIMessage | undefined) =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Resolves when a chat is at rest and has nothing more to send by itself. */
async function quiet({ chat }: { chat: Chat<UIMessage> }): Promise<void> {
  do await new Promise((resolve) => setTimeout(resolve, 5));
  while (chat.status === 'submitted' || chat.status === 'streaming');
}

const approve = (chat: Chat<UIMessage>, approved: boolean, reason?: string) => {
  const call = findCalls(chat.lastMessage).at(-1);
  return chat.addToolApprovalResponse({ id: call!.approval!.id, approved, ...(reason !== undefined && { reason }) });
};

describe.each(['memory', 'postgres', 'their database'] as const)('%s', (kind) => {
  let server: BorrowedServer | undefined;
  beforeAll(async () => {
    if (kind === 'postgres') server = await borrowPostgres();
  });
  afterAll(() => server?.[Symbol.asyncDispose]());
  const openChat = (script: readonly ScriptedResponse[], loop: Loop = {}) =>
    openSite(server?.url, script, { ...loop, isTheirs: kind === 'their database' });

  test('a call that needs a yes waits for it, and the answer continues the same message', async () => {
    await using site = await openChat([PAY, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'approval-requested' }]);
    expect([site.paid, page.chat.error]).toEqual([[], undefined]);
    expect((await site.store.list({ tenant: 'ada', conversation: site.id })).tasks).toMatchObject([
      { status: 'success' },
    ]);
    const { id } = page.chat.lastMessage!;
    await approve(page.chat, true);
    await quiet(page);
    expect(page.chat.error).toBeUndefined();
    expect(page.chat.messages).toHaveLength(2);
    expect(page.chat.lastMessage!.id).toBe(id);
    expect([words(page.chat.lastMessage), site.paid]).toEqual(['May I? Done.', [{ eur: 5 }]]);
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'output-available', output: 'paid' }]);
    expect(site.audited).toEqual([expect.stringMatching(/^approve .+ accepted$/)]);
    // The store has what the page shows, and a new message continues from it.
    expect(await site.stored()).toEqual(JSON.parse(JSON.stringify(page.chat.messages)));
    expect(site.refusals()).toEqual([undefined, undefined]);
  });

  test.for([true, false])('a question of the loop itself is answered the same way (%s)', async (approved) => {
    await using site = await openChat([PAY, DONE], { isLoopAsking: true });
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'approval-requested' }]);
    await approve(page.chat, approved);
    await quiet(page);
    expect([words(page.chat.lastMessage), site.paid.length]).toEqual(['May I? Done.', approved ? 1 : 0]);
    expect(site.refusals()).toEqual([undefined, undefined]);
  });

  test('the model sees a no as a no, and nothing runs', async () => {
    await using site = await openChat([PAY, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    await approve(page.chat, false, 'Too much.');
    await quiet(page);
    expect([words(page.chat.lastMessage), site.paid]).toEqual(['May I? Done.', []]);
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'output-denied' }]);
    expect(site.told()).toContain('Too much.');
    expect(site.refusals()).toEqual([undefined, undefined]);
  });

  test('only users who may answer continue the message, and approvers see the call', async () => {
    const seen: unknown[] = [];
    let mayAnswer = false;
    const approvers: ApproverOptions['approvers'] = (question, { name }) => {
      seen.push({ ...question, by: name });
      return mayAnswer;
    };
    await using site = await openChat([PAY, DONE], { rules: { approvers } });
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    await approve(page.chat, true);
    await quiet(page);
    expect(page.chat.error?.message).toContain('You may not answer this question');
    const { id: task } = page.chat.lastMessage!;
    const about = { task, tool: 'pay', input: { eur: 5 }, kind: 'approve', callId: 'p1', startedBy: 'ada' };
    expect(seen).toMatchObject([{ ...about, conversation: site.id, by: 'ada' }]);
    expect([site.paid, site.audited]).toEqual([[], [`approve ${task} refused`]]);
    mayAnswer = true;
    const next = await site.open();
    await approve(next.chat, true);
    await quiet(next);
    expect([site.paid, site.audited.at(-1)]).toEqual([[{ eur: 5 }], `approve ${task} accepted`]);
    expect(next.chat.lastMessage!.id).toBe(task);
  });

  test('a question is answered in another tab, after a deploy', async () => {
    await using site = await openChat([PAY, DONE, DONE]);
    const first = await site.open();
    await first.chat.sendMessage({ text: 'Pay' });
    await site.deploy();
    const second = await site.open();
    await approve(second.chat, true);
    await quiet(second);
    expect([words(second.chat.lastMessage), site.paid]).toEqual(['May I? Done.', [{ eur: 5 }]]);
    // The first tab has not seen that. Its own answer changes nothing, and it is shown what counts.
    await approve(first.chat, false);
    await quiet(first);
    expect([first.chat.status, first.chat.error]).toEqual(['ready', undefined]);
    expect(site.paid).toHaveLength(1);
    expect(await site.stored()).toEqual(JSON.parse(JSON.stringify(second.chat.messages)));
    expect(JSON.parse(JSON.stringify(first.chat.messages))).toEqual(await site.stored());
    expect(site.audited).toHaveLength(1);
  });

  test('a tab that denies a call while another tab’s yes is applied sees the yes', async () => {
    const started = Promise.withResolvers<void>();
    const held = Promise.withResolvers<string>();
    const pay = () => {
      started.resolve();
      return held.promise;
    };
    await using site = await openChat([LOCATE, PAY, PAY_MORE, DONE], { pay });
    const first = await site.open();
    await first.chat.sendMessage({ text: 'Pay here' });
    await first.chat.addToolOutput({ tool: 'locate', toolCallId: 'l1', output: 'Oslo' } as never);
    await quiet(first);
    const second = await site.open();
    await approve(first.chat, true);
    await started.promise;
    await approve(second.chat, false);
    await expect.poll(() => findCalls(second.chat.lastMessage)[1]?.approval?.approved).toBe(true);
    held.resolve('paid');
    await Promise.all([quiet(first), quiet(second)]);
    expect([second.chat.status, second.chat.error]).toEqual(['ready', undefined]);
    expect(words(second.chat.lastMessage)).toBe('Where? May I? More? ');
    expect(JSON.parse(JSON.stringify(second.chat.messages))).toEqual(await site.stored());
    // The next question is asked in both, and can be answered in either.
    await approve(second.chat, false);
    await quiet(second);
    expect(words(second.chat.lastMessage)).toBe('Where? May I? More? Done.');
    expect(site.paid).toHaveLength(1);
  });

  test.for(['twice at once', 'with a claim about another call'])(
    'an answer that comes %s counts once',
    async (kind) => {
      const started = Promise.withResolvers<void>();
      const held = Promise.withResolvers<string>();
      const pay = () => {
        started.resolve();
        return held.promise;
      };
      await using site = await openChat([PAY, DONE], { pay });
      const page = await site.open();
      await page.chat.sendMessage({ text: 'Pay' });
      const asked = page.chat.lastMessage!;
      const forged = {
        ...asked,
        parts: [
          ...asked.parts.map((part) =>
            isToolUIPart(part)
              ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved: true } }
              : part,
          ),
          { type: 'tool-pay', toolCallId: 'x9', state: 'output-available', input: {}, output: 'forged' },
        ],
      };
      const first = site.post({ messages: [forged], runId: 'r1' });
      await started.promise;
      const second = kind === 'twice at once' ? site.post({ messages: [forged], runId: 'r2' }) : undefined;
      held.resolve('paid');
      for (const response of [await first, ...(second ? [await second] : [])])
        expect(await response.text()).toMatch(/Done\./);
      expect(site.paid).toHaveLength(1);
      expect(JSON.stringify(await site.stored())).not.toContain('forged');
      expect(site.told()).not.toContain('forged');
    },
  );

  test('a page’s results for calls that are not open are rejected', async () => {
    await using site = await openChat([PAY, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    const asked = page.chat.lastMessage!;
    const claim = (change: object) => ({
      messages: [{ ...asked, parts: asked.parts.map((part) => (isToolUIPart(part) ? { ...part, ...change } : part)) }],
    });
    for (const change of [
      { state: 'output-available', output: 'paid' },
      { state: 'output-error', errorText: 'no' },
      { state: 'approval-responded', approval: { id: 'another', approved: true } },
      { toolCallId: 'p2', state: 'approval-responded', approval: { ...findCalls(asked)[0]!.approval, approved: true } },
      {},
    ]) {
      const response = await site.post(claim(change));
      expect([response.status, ((await response.json()) as { error: object }).error]).toMatchObject([
        409,
        { code: 'not-pending' },
      ]);
    }
    const yes = { state: 'approval-responded', approval: { ...findCalls(asked)[0]!.approval, approved: true } };
    expect((await site.post(claim(yes), { 'x-user': 'eve' })).status).toBe(409);
    expect(site.paid).toEqual([]);
    expect(findCalls((await site.stored()).at(-1))).toMatchObject([{ state: 'approval-requested' }]);
  });

  test('a stop of a waiting question closes it as not started, even when no run exists; a later yes starts nothing', async () => {
    await using site = await openChat([PAY, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    const receipt = await site.stop();
    expect(receipt).toMatchObject({ result: 'accepted', message: { id: page.chat.lastMessage!.id } });
    expect(findCalls(receipt.message)).toMatchObject([
      { state: 'output-error', errorText: 'Not started: cancelled (user). It had no effect.' },
    ]);
    expect(await site.stop()).toEqual({ result: 'idle' });
    await approve(page.chat, true);
    await quiet(page);
    expect(page.chat.status).toBe('ready');
    expect(findCalls(page.chat.lastMessage)).toEqual(findCalls(receipt.message));
    expect(site.requests.filter((request) => request === 'POST ')).toHaveLength(2);
    expect(site.paid).toEqual([]);
    const next = await site.open();
    await next.chat.sendMessage({ text: 'And?' });
    expect(words(next.chat.lastMessage)).toBe('Done.');
    expect(site.told()).toContain('Not started: cancelled (user)');
    expect(site.told()).not.toMatch(/denied/i);
    expect(site.refusals()).toEqual([undefined, undefined]);
  });

  test('a new message instead of an answer closes the question, and the page shows it', async () => {
    await using site = await openChat([PAY, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    await page.chat.sendMessage({ text: 'Something else' });
    expect(words(page.chat.lastMessage)).toBe('Done.');
    expect(site.told()).toContain('Not started: cancelled (superseded)');
    const [, asked] = await site.stored();
    expect(findCalls(asked)).toMatchObject([{ state: 'output-error' }]);
    expect(site.refusals()).toEqual([undefined, undefined]);
  });

  test('a stop while an approved call runs interrupts it, in the message of the question', async () => {
    const started = Promise.withResolvers<void>();
    const pay = () => {
      started.resolve();
      return new Promise(() => {});
    };
    await using site = await openChat([PAY, DONE], { pay });
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay' });
    const { id } = page.chat.lastMessage!;
    await approve(page.chat, true);
    await started.promise;
    expect(await site.stop({ messageId: id })).toMatchObject({ result: 'accepted' });
    await quiet(page);
    expect(findCalls(page.chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: expect.stringMatching(/^Outcome unknown/) as string },
    ]);
    const shown = await site.stored();
    expect(shown.map((message) => message.id)).toEqual([expect.any(String), id]);
    expect(shown[1]!.parts.at(-1)).toMatchObject({ type: 'data-stop-report', data: { calls: [{ state: 'unknown' }] } });
  });

  test('a page that opens while a continued reply runs is streamed the whole message', async () => {
    const started = Promise.withResolvers<void>();
    const held = Promise.withResolvers<string>();
    const pay = () => {
      started.resolve();
      return held.promise;
    };
    await using site = await openChat([LOCATE, PAY, DONE], { pay });
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Pay here' });
    await page.chat.addToolOutput({ tool: 'locate', toolCallId: 'l1', output: 'Oslo' } as never);
    await quiet(page);
    await approve(page.chat, true, 'Fine.');
    await started.promise;
    const ran: string[] = [];
    const other = await site.open({ onToolCall: ({ toolCall }) => void ran.push(toolCall.toolName) });
    const resuming = other.chat.resumeStream();
    await expect.poll(() => other.chat.status).toBe('streaming');
    held.resolve('paid');
    await Promise.all([resuming, quiet(page)]);
    expect(JSON.parse(JSON.stringify(other.chat.messages))).toEqual(JSON.parse(JSON.stringify(page.chat.messages)));
    expect(words(other.chat.lastMessage)).toBe('Where? May I? Done.');
    // A call that has ended is not run in the page again.
    expect(ran).toEqual(['pay']);
  });

  test('a tool that runs in the page: its result continues the message', async () => {
    await using site = await openChat([LOCATE, DONE]);
    const page: Awaited<ReturnType<typeof site.open>> = await site.open({
      onToolCall: ({ toolCall }) => {
        const { toolCallId } = toolCall;
        void page.chat.addToolOutput({ tool: 'locate', toolCallId, output: 'Oslo' } as never);
      },
    });
    await page.chat.sendMessage({ text: 'Where am I?' });
    await quiet(page);
    expect(page.chat.error).toBeUndefined();
    expect(words(page.chat.lastMessage)).toBe('Where? Done.');
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'output-available', output: 'Oslo' }]);
    expect(site.told()).toContain('Oslo');
    expect(await site.stored()).toEqual(JSON.parse(JSON.stringify(page.chat.messages)));
    expect(site.requests.filter((request) => request === 'POST ')).toHaveLength(2);
  });

  test('a tool that fails in the page: the model sees its error', async () => {
    await using site = await openChat([LOCATE, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Where am I?' });
    expect(findCalls(page.chat.lastMessage)).toMatchObject([{ state: 'input-available' }]);
    await page.chat.addToolOutput({
      tool: 'locate',
      toolCallId: 'l1',
      state: 'output-error',
      errorText: 'The user has switched it off.',
    } as never);
    await quiet(page);
    expect(words(page.chat.lastMessage)).toBe('Where? Done.');
    expect(site.told()).toContain('switched it off');
  });

  test("a stop of a page's call: its outcome is unknown, and its result is taken as a late one only", async () => {
    await using site = await openChat([LOCATE, DONE]);
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Where am I?' });
    const { message } = await site.stop({ messageId: page.chat.lastMessage!.id });
    expect(findCalls(message)).toMatchObject([
      {
        state: 'output-error',
        errorText: expect.stringMatching(/^Outcome unknown: it was stopped \(user\)/) as string,
      },
    ]);
    await page.chat.addToolOutput({ tool: 'locate', toolCallId: 'l1', output: 'Oslo' } as never);
    await quiet(page);
    expect(page.chat.error).toBeUndefined();
    expect(site.provider.requests).toHaveLength(1);
    const late = [{ state: 'output-error', errorText: 'It was cancelled, but still finished later: Oslo' }];
    expect(findCalls(page.chat.lastMessage)).toMatchObject(late);
    expect(findCalls((await site.stored()).at(-1))).toMatchObject(late);
    await page.chat.sendMessage({ text: 'And?' });
    expect(words(page.chat.lastMessage)).toBe('Done.');
    expect(site.told()).toContain('still finished later: Oslo');
    expect(site.refusals()).toEqual([undefined, undefined]);
  });
});

describe('a turn that is stopped with `rollback`', () => {
  const HELD = { parts: [{ text: ['Half ', { stall: true } as const] }] };

  test('a question: nothing has happened, and the turn is removed', async () => {
    await using site = await openSite(undefined, [DONE, PAY, DONE], {});
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Hello' });
    const before = await site.stored();
    await page.chat.sendMessage({ text: 'Pay' });
    expect(await site.stop({ rollback: true })).toEqual({ result: 'accepted', rolledBack: true });
    expect(await site.stored()).toEqual(before);
    await page.chat.sendMessage({ text: 'Something else' });
    expect(site.told()).not.toContain('"Pay"');
    expect(site.refusals()).toEqual([undefined, undefined, undefined]);
  });

  test.for([
    [false, 'denied: nothing has happened, and the whole turn is removed'],
    [true, 'approved: the call stands, and so does the turn'],
  ] as const)('continued after a question that was answered %s: %s', async ([approved]) => {
    await using site = await openSite(undefined, [DONE, PAY, HELD], {});
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Hello' });
    const before = await site.stored();
    await page.chat.sendMessage({ text: 'Pay' });
    const { id: messageId } = page.chat.lastMessage!;
    await approve(page.chat, approved);
    await expect.poll(() => words(page.chat.lastMessage)).toBe('May I? Half ');
    const receipt = await site.stop({ messageId, rollback: true });
    await quiet(page);
    expect(site.paid).toHaveLength(approved ? 1 : 0);
    if (approved) {
      expect(receipt).toMatchObject({ result: 'accepted', rolledBack: false, effectsNotUndone: ['p1'] });
      expect(words((await site.stored()).at(-1))).toBe('May I? Half ');
    } else {
      expect(receipt).toEqual({ result: 'accepted', rolledBack: true });
      expect(await site.stored()).toEqual(before);
    }
  });

  test('a tool of the page that may have run stands', async () => {
    await using site = await openSite(undefined, [LOCATE, DONE], {});
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Where am I?' });
    const receipt = await site.stop({ messageId: page.chat.lastMessage!.id, rollback: true });
    expect(receipt).toMatchObject({ result: 'accepted', rolledBack: false, effectsNotUndone: ['l1'] });
    expect(findCalls((await site.stored()).at(-1))).toMatchObject([{ state: 'output-error' }]);
  });

  test('a turn that has ended by itself stays', async () => {
    await using site = await openSite(undefined, [DONE], {});
    const page = await site.open();
    await page.chat.sendMessage({ text: 'Hello' });
    const receipt = await site.stop({ messageId: page.chat.lastMessage!.id, rollback: true });
    expect(receipt).toEqual({ result: 'too-late', rolledBack: false });
    expect(await site.stored()).toHaveLength(2);
  });
});

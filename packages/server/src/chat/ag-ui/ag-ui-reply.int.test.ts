// Approvals of the application's own loop over AG-UI: the turn ends with an interrupt, and a run that resumes answers it.
/* oxlint-disable typescript/no-deprecated -- what applications have */
import { type BaseEvent, HttpAgent } from '@ag-ui/client';
import type { Interrupt, ResumeEntry } from '@ag-ui/core';
import { EventSchemas } from '@ag-ui/core/schemas';
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore } from '@whoa/tasks';
import { streamText, tool } from 'ai';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { listen } from '../../http/listen.ts';
import { createAgUiHandler } from './ag-ui-handler.ts';

const ASK: ScriptedResponse = {
  parts: [
    { text: 'May I? ' },
    { call: 'pay', id: 'p1', input: { eur: 5 } },
    { call: 'pay', id: 'p2', input: { eur: 6 } },
  ],
};
const ASK_AGAIN: ScriptedResponse = { parts: [{ text: 'More? ' }, { call: 'pay', id: 'p3', input: { eur: 7 } }] };
const DONE: ScriptedResponse = { parts: [{ text: 'Done.' }] };

async function openThread(script: readonly ScriptedResponse[]) {
  const provider = await startLoopbackProvider({ script: [...script] });
  const store = createMemoryStore();
  const paid: number[] = [];
  const tools = {
    pay: tool({
      inputSchema: z.object({ eur: z.number() }),
      needsApproval: true,
      execute: ({ eur }) => {
        paid.push(eur);
        return `paid ${eur}`;
      },
    }),
  };
  const handler = createAgUiHandler({
    store,
    authenticate: (request) => request.headers.get('x-user'),
    tools,
    reply: (turn) =>
      streamText({ model: createOpenAI({ baseURL: provider.url, apiKey: 'x' }).chat('gpt-4o'), ...turn }),
  });
  const listening = await listen(handler);
  const url = `${listening.url}/api/ag-ui`;
  const agent = new HttpAgent({ url, headers: { 'x-user': 'ada' }, threadId: 't' });
  let events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    paid,
    provider,
    async run(runId: string, { say, resume }: { say?: string; resume?: ResumeEntry[] }) {
      if (say !== undefined) agent.addMessage({ id: say, role: 'user', content: say });
      events = [];
      await agent.runAgent({ runId, ...(resume && { resume }) });
      for (const event of events) expect(EventSchemas.safeParse(event)).toMatchObject({ success: true });
      return events;
    },
    async post(path: string, body: object, user = 'ada') {
      const headers = { 'content-type': 'application/json', 'x-user': user };
      const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: response.status, text: await response.text() };
    },
    said: () => agent.messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`),
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

function findInterrupts(events: readonly BaseEvent[]): Interrupt[] {
  const { type, outcome } = events.at(-1) as BaseEvent & { outcome: { type: string; interrupts: Interrupt[] } };
  expect([type, outcome.type]).toEqual(['RUN_FINISHED', 'interrupt']);
  return outcome.interrupts;
}

const answer = (interruptId: string, approved: boolean, more: object = {}): ResumeEntry => ({
  interruptId,
  status: 'resolved',
  payload: { approved, ...more },
});

test('the turn ends with its questions; a run that answers them sends only new events, and may ask again', async () => {
  await using thread = await openThread([ASK, ASK_AGAIN, DONE]);
  const [one, two] = findInterrupts(await thread.run('r1', { say: 'Pay' }));
  expect([one, two]).toMatchObject([{ toolCallId: 'p1' }, { toolCallId: 'p2' }]);
  expect(thread.paid).toEqual([]);
  const resume = [answer(one!.id, true), answer(two!.id, false, { why: 'Too much.' })];
  const second = await thread.run('r2', { resume });
  expect(second[0]).toMatchObject({ type: 'RUN_STARTED', runId: 'r2' });
  const [again] = findInterrupts(second);
  expect([thread.paid, again!.toolCallId]).toEqual([[5], 'p3']);
  // Repeating the request returns the same run, and does nothing else.
  const repeated = await thread.post('', { threadId: 't', runId: 'r2', messages: [], resume });
  expect(repeated).toMatchObject({ status: 200, text: expect.stringContaining(again!.id) as string });
  const third = await thread.run('r3', { resume: [{ interruptId: again!.id, status: 'cancelled' }] });
  expect(third.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } });
  expect(thread.paid).toEqual([5]);
  expect(thread.said().filter((said) => said.startsWith('assistant: ') && said.length > 11)).toEqual([
    'assistant: May I? ',
    'assistant: More? ',
    'assistant: Done.',
  ]);
  expect(JSON.stringify(thread.provider.requests.at(-1)!.body)).toContain('Too much.');
  expect(thread.provider.requests.map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined]);
});

test('answers to questions that are answered, stopped or unknown are rejected, and so are other users', async () => {
  await using thread = await openThread([ASK, DONE]);
  const [one, two] = findInterrupts(await thread.run('r1', { say: 'Pay' }));
  const ask = (resume: ResumeEntry[], user?: string) =>
    thread.post('', { threadId: 't', runId: `r${Math.random()}`, messages: [], resume }, user);
  expect((await ask([answer('other', true)])).status).toBe(409);
  expect((await ask([answer(one!.id, true), answer('other', true)])).status).toBe(409);
  expect((await ask([answer(one!.id, true)], 'eve')).status).toBe(409);
  expect(JSON.parse((await thread.post('/t/stop', {})).text)).toMatchObject({ result: 'accepted' });
  expect((await ask([answer(one!.id, true), answer(two!.id, true)])).status).toBe(409);
  expect(thread.paid).toEqual([]);
});

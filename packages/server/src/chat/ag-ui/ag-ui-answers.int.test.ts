// An agent's questions, and tools that run in the page, over AG-UI. Read by the official client.
import { type BaseEvent, HttpAgent } from '@ag-ui/client';
import type { Interrupt, ResumeEntry } from '@ag-ui/core';
import { EventSchemas } from '@ag-ui/core/schemas';
import { createAgent, defineTool, type Tool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { createMemoryStore } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { listen } from '../../http/listen.ts';
import { createAgUiHandler } from './ag-ui-handler.ts';

const about = { description: 'Asks', inputSchema: z.object({}) };
const when = defineTool({ ...about, name: 'when', answeredBy: 'user', answerSchema: z.object({ day: z.number() }) });
const locate = defineTool({ ...about, name: 'locate', answeredBy: 'client' });

async function openThread(call: string) {
  const store = createMemoryStore();
  const model = createScriptedModel([
    ['Well. ', { call, id: 'c1', input: {} }],
    ({ messages }) => [messages.findLast(({ role }) => role === 'tool')!.content as string],
  ]);
  const handler = createAgUiHandler({
    store,
    authenticate: () => 'ada',
    agent: createAgent({ name: 'assistant', model, tools: [when, locate] as Tool[] }),
  });
  const listening = await listen(handler);
  onTestFinished(async () => {
    await listening[Symbol.asyncDispose]();
    await handler[Symbol.asyncDispose]();
    await store[Symbol.asyncDispose]();
  });
  const agent = new HttpAgent({ url: `${listening.url}/api/ag-ui`, threadId: 't' });
  let events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  const run = async (runId: string, resume?: ResumeEntry[]) => {
    events = [];
    await agent.runAgent({ runId, ...(resume && { resume }) });
    for (const event of events) expect(EventSchemas.safeParse(event)).toMatchObject({ success: true });
    return events as (BaseEvent & { outcome?: { type: string; interrupts?: Interrupt[] }; delta?: string })[];
  };
  agent.addMessage({ id: 'go', role: 'user', content: 'go' });
  return { agent, run };
}

const words = (events: readonly { delta?: string; type: string }[]) =>
  events.map(({ type, delta }) => (type === 'TEXT_MESSAGE_CONTENT' ? delta : '')).join('');

test("an agent's question interrupts the run with its schema, and a resumed run continues with the answer", async () => {
  const { run } = await openThread('when');
  const { outcome } = (await run('one')).at(-1)!;
  expect(outcome).toMatchObject({
    type: 'interrupt',
    interrupts: [{ reason: 'input_required', toolCallId: 'c1', responseSchema: { properties: { day: {} } } }],
  });
  const interruptId = outcome!.interrupts![0]!.id;
  const events = await run('two', [{ interruptId, status: 'resolved', payload: { day: 3 } }]);
  expect([words(events), events.at(-1)!.outcome]).toEqual(['{"day":3}', { type: 'success' }]);
});

test('a question that is given up ends its call as not started', async () => {
  const { run } = await openThread('when');
  const { outcome } = (await run('one')).at(-1)!;
  const interruptId = outcome!.interrupts![0]!.id;
  expect(words(await run('two', [{ interruptId, status: 'cancelled' }]))).toBe('Not started: the user gave no answer');
});

test('a tool of the page ends the run, and its tool message continues the reply', async () => {
  const { agent, run } = await openThread('locate');
  const first = await run('one');
  expect([words(first), first.at(-1)!.outcome]).toEqual(['Well. ', { type: 'success' }]);
  agent.addMessage({ id: 'r1', role: 'tool', toolCallId: 'c1', content: 'Oslo' });
  const second = await run('two');
  expect([words(second), second.at(-1)!.outcome]).toEqual(['Oslo', { type: 'success' }]);
  expect(second.map(({ type }) => type)).not.toContain('TOOL_CALL_RESULT');
});

// P13 over AG-UI: a question interrupts the run, and a run that resumes answers it. Read by the official client.
import { type BaseEvent, HttpAgent } from '@ag-ui/client';
import type { Interrupt, ResumeEntry } from '@ag-ui/core';
import { EventSchemas } from '@ag-ui/core/schemas';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createMemoryStore, createTaskApprovals } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { createAskingAgent } from '../../../../../test/server/asking-agent.ts';
import { USER_RIGHTS } from '../../http/access/principal.ts';
import { listen } from '../../http/listen.ts';
import { createAgUiHandler } from './ag-ui-handler.ts';

const COMMAND = 'echo hello\nrm -rf build';

async function openThread() {
  const provider = await startLoopbackProvider({
    script: ({ body }) => {
      const messages = JSON.stringify(body);
      if (messages.includes('Never mind')) return { parts: [{ text: 'Fine.' }] };
      const call = (id: string) => ({ call: 'run', id, input: { command: COMMAND } });
      return messages.includes('"tool_call_id"')
        ? { parts: [{ text: 'So be it.' }] }
        : { parts: [{ text: 'I would. ' }, call('c1'), call('c2')] };
    },
  });
  const ran: string[] = [];
  const approvals = createTaskApprovals();
  const store = createMemoryStore();
  const audited: string[] = [];
  const authenticate = (request: Request) => {
    const name = request.headers.get('x-user');
    const rights = name === 'reader' ? USER_RIGHTS.filter((right) => right !== 'approve') : USER_RIGHTS;
    return name && { tenant: name === 'eve' ? 'eve' : 'ada', name, rights };
  };
  const handler = createAgUiHandler({
    store,
    authenticate,
    approvals,
    audit: ({ type, actor, result }) => audited.push(`${actor} ${type} ${result}`),
    agent: createAskingAgent({ url: provider.url, approvals, ran }),
  });
  const listening = await listen(handler);
  const url = `${listening.url}/api/ag-ui`;
  const agent = new HttpAgent({ url, headers: { 'x-user': 'ada' }, threadId: 't' });
  let events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    agent,
    ran,
    audited,
    provider,
    store,
    /** Runs, and returns its events, which are valid in the protocol. */
    async run(runId: string, { say, resume }: { say?: string; resume?: ResumeEntry[] } = {}) {
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
    connect: () => fetch(`${url}/t/connect`, { headers: { 'x-user': 'ada' } }),
    said: () => agent.messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`),
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await handler[Symbol.asyncDispose]();
      await store[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

const count = (events: readonly BaseEvent[], wanted: string): number =>
  events.filter(({ type }) => type === wanted).length;

const findInterrupt = (events: readonly BaseEvent[]): Interrupt => {
  const { type, outcome } = events.at(-1) as BaseEvent & { outcome: { type: string; interrupts: Interrupt[] } };
  expect([type, outcome.type, outcome.interrupts.length]).toEqual(['RUN_FINISHED', 'interrupt', 1]);
  return outcome.interrupts[0]!;
};

const answer = (interruptId: string, approved: boolean, more: object = {}): ResumeEntry[] => [
  { interruptId, status: 'resolved', payload: { approved, ...more } },
];

test('a question interrupts the run; each resumed run sends only new events, and the thread is complete', async () => {
  await using thread = await openThread();
  const first = await thread.run('r1', { say: 'Go' });
  const asked = findInterrupt(first);
  expect(asked).toMatchObject({ reason: 'tool_call', toolCallId: expect.any(String) as string });
  expect(JSON.stringify(asked.metadata)).toContain('rm -rf build');
  for (const open of ['TEXT_MESSAGE', 'TOOL_CALL'])
    expect(count(first, `${open}_START`)).toBe(count(first, `${open}_END`));
  expect(types(first).slice(-2)).toEqual(['STEP_FINISHED', 'RUN_FINISHED']);
  expect(thread.ran).toEqual([]);
  const second = await thread.run('r2', { resume: answer(asked.id, true) });
  expect(second[0]).toMatchObject({ type: 'RUN_STARTED', runId: 'r2' });
  expect(types(second)).not.toContain('TEXT_MESSAGE_CONTENT');
  const again = findInterrupt(second);
  expect(again.id).not.toBe(asked.id);
  const third = await thread.run('r3', { resume: answer(again.id, false, { why: 'Once is enough.' }) });
  expect(third.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r3', outcome: { type: 'success' } });
  expect(thread.ran).toEqual([COMMAND]);
  expect(thread.said()).toMatchObject([
    'user: Go',
    'assistant: I would. ',
    /it ran/,
    /Once is enough/,
    'assistant: So be it.',
  ]);
  expect(thread.audited).toEqual(['ada approve accepted', 'ada approve accepted']);
  // Repeating the request for the same run repeats its result and does nothing else.
  const told = await thread.run('r3', { resume: answer(again.id, true) });
  expect(told.at(-1)).toMatchObject({ runId: 'r3', outcome: { type: 'success' } });
  expect([thread.ran, thread.audited.length]).toEqual([[COMMAND], 2]);
});

test('a stop by the name of any of its runs ends an interrupted reply; one that is ahead of its run counts', async () => {
  await using thread = await openThread();
  const asked = findInterrupt(await thread.run('r1', { say: 'Go' }));
  const next = findInterrupt(await thread.run('r2', { resume: answer(asked.id, true) }));
  expect(JSON.parse((await thread.post('/t/stop', { runId: 'r3' })).text)).toEqual({ result: 'recorded' });
  const third = await thread.run('r3', { resume: answer(next.id, true) });
  expect(third.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'r3', outcome: { type: 'cancelled' } });
  expect(thread.ran).toEqual([COMMAND]);
  expect(JSON.parse((await thread.post('/t/stop', { runId: 'r2' })).text)).toEqual({ result: 'unchanged' });
  // A stopped task has no open question.
  const late = await thread.post('', { threadId: 't', runId: 'r4', messages: [], resume: answer(next.id, true) });
  expect(late).toMatchObject({ status: 409, text: expect.stringContaining('not-pending') as string });
});

test('a user who cancels a question and sends another message gets an answer to the message', async () => {
  await using thread = await openThread();
  const { id } = findInterrupt(await thread.run('r1', { say: 'Go' }));
  const fields = { threadId: 't', runId: 'r2', messages: [{ id: 'Never mind', role: 'user', content: 'Never mind' }] };
  expect((await thread.post('', { ...fields, resume: answer(id, true) })).status).toBe(400);
  const events = await thread.run('r2', { say: 'Never mind', resume: [{ interruptId: id, status: 'cancelled' }] });
  expect(events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  expect(thread.said().at(-1)).toBe('assistant: Fine.');
  expect(thread.ran).toEqual([]);
});

test('an abandoned question counts as a no; it can also be answered without a run, and readers that join continue', async () => {
  await using thread = await openThread();
  const asked = findInterrupt(await thread.run('r1', { say: 'Go' }));
  const next = findInterrupt(await thread.run('r2', { resume: [{ interruptId: asked.id, status: 'cancelled' }] }));
  const joined = await (await thread.connect()).text();
  expect(joined).toMatch(/"type":"RUN_STARTED".*"runId":"r1".*MESSAGES_SNAPSHOT.*I would\. .*"interrupt"/s);
  const approval = { approvalId: next.id, approved: true };
  expect((await thread.post('/t/approve', approval, 'eve')).status).toBe(409);
  expect((await thread.post('/t/approve', approval, 'reader')).status).toBe(403);
  expect((await thread.post('/t/approve', { ...approval, approvalId: 'c1' })).status).toBe(409);
  expect(JSON.parse((await thread.post('/t/approve', approval)).text)).toEqual({ result: 'accepted' });
  const same = await thread.post('', { threadId: 't', runId: 'r1', messages: [] });
  expect(same.text).toMatch(/it ran.*So be it\..*"success"/s);
  expect(thread.ran).toEqual([COMMAND]);
});

test('invalid answers, and people who may not give them, are rejected, and the question stays', async () => {
  await using thread = await openThread();
  const { id } = findInterrupt(await thread.run('r1', { say: 'Go' }));
  const ask = (resume: unknown, user?: string) =>
    thread.post('', { threadId: 't', runId: 'r2', messages: [], resume }, user);
  for (const payload of [undefined, null, true, 'yes', {}, { approved: 'yes' }])
    expect((await ask([{ interruptId: id, status: 'resolved', payload }])).status).toBe(400);
  expect((await ask([{ interruptId: id, status: 'maybe' }])).status).toBe(400);
  expect((await ask(answer('other', true))).status).toBe(409);
  expect((await ask(answer(id, true), 'reader')).status).toBe(403);
  expect((await ask(answer(id, true), 'eve')).status).toBe(409);
  expect(thread.ran).toEqual([]);
  const again = findInterrupt(await thread.run('r2', { resume: answer(id, true) }));
  expect(again.id).not.toBe(id);
});

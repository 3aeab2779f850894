// AG-UI over real HTTP, read by the official client and judged by the official schemas, with an agent and with `streamText`.
import { type BaseEvent, HttpAgent, runHttpRequest, transformHttpEventStream } from '@ag-ui/client';
import type { RunAgentInput } from '@ag-ui/core';
import { EventSchemas } from '@ag-ui/core/schemas';
import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import { describe, expect, test } from 'vitest';
import { CALL, KINDS, type Kind, openChat as openAnyChat } from '../../../../../test/server/chat-harness.ts';
import { listen } from '../../http/listen.ts';
import { readChunks } from '../client/read-chunks.ts';
import { createAgUiHandler } from './ag-ui-handler.ts';

async function openChat(kind: Kind, script: readonly ScriptedResponse[]) {
  const fixture = await openAnyChat(kind, script, createAgUiHandler);
  const listening = await listen(fixture.handler);
  return {
    ...fixture,
    url: `${listening.url}/api/ag-ui`,
    async [Symbol.asyncDispose]() {
      await listening[Symbol.asyncDispose]();
      await fixture[Symbol.asyncDispose]();
    },
  };
}

/** The official client, with the one thing that the protocol leaves to the application: where a thread is joined. */
class ThreadAgent extends HttpAgent {
  protected override connect({ threadId }: RunAgentInput) {
    const { headers } = this;
    return transformHttpEventStream(runHttpRequest(() => fetch(`${this.url}/${threadId}/connect`, { headers })));
  }
}

function openAgent(url: string, user = 'ada') {
  const headers = { 'x-user': user };
  const agent = new ThreadAgent({ url, headers, threadId: 't' });
  const events: BaseEvent[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    agent,
    events,
    async run(id: string, content: string, runId = `run-${id}`) {
      agent.addMessage({ id, role: 'user', content });
      return agent.runAgent({ runId });
    },
    async stop(body: object) {
      const init = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
      return (await fetch(`${url}/t/stop`, { ...init, body: JSON.stringify(body) })).json() as Promise<unknown>;
    },
    said: () => agent.messages.map(({ role, content }) => `${role}: ${typeof content === 'string' ? content : ''}`),
  };
}

const types = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);

function judge(events: readonly BaseEvent[]): void {
  for (const event of events) expect(EventSchemas.safeParse(event)).toMatchObject({ success: true });
}

describe.each(KINDS)('%s', (kind) => {
  test('answers, and the next run of the thread knows it', async () => {
    await using fixture = await openChat(kind, [
      CALL,
      { parts: [{ text: '42.' }] },
      { parts: [{ text: 'As I said.' }] },
    ]);
    const page = openAgent(fixture.url);
    fixture.hands.release.resolve('forty-two');
    await page.run('u1', 'What is it?');
    judge(page.events);
    expect(types(page.events)[0]).toBe('RUN_STARTED');
    expect(page.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', runId: 'run-u1', outcome: { type: 'success' } });
    expect(page.said()).toMatchObject(['user: What is it?', 'assistant: Let me see. ', /forty-two/, 'assistant: 42.']);
    await page.run('u2', 'And?');
    expect(page.said().at(-1)).toBe('assistant: As I said.');
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toContain('forty-two');
  });

  test('a stop ends the run as cancelled, with everything closed; the next run knows the truth', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Sorry.' }] }]);
    const page = openAgent(fixture.url);
    const running = page.run('u1', 'Go');
    await fixture.hands.started.promise;
    expect(await page.stop({ runId: 'run-u1' })).toMatchObject({ result: 'accepted' });
    await running;
    judge(page.events);
    expect(page.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
    expect(page.events).toContainEqual(expect.objectContaining({ type: 'CUSTOM', name: 'stop-report' }));
    const { tasks } = await fixture.store.list({ tenant: 'ada' });
    expect((await fixture.store.get(tasks[0]!))?.outcome?.reason).toMatchObject({ by: 'ada', via: 'ag-ui' });
    await page.run('u2', 'Why?');
    expect(JSON.stringify(fixture.provider.requests.at(-1)!.body)).toContain('Interrupted (user)');
    expect(page.said().at(-1)).toBe('assistant: Sorry.');
  });

  test('a client that leaves stops nothing; one that joins reads the whole run, and can stop the thread', async () => {
    await using fixture = await openChat(kind, [CALL]);
    const page = openAgent(fixture.url);
    const gone = page.run('u1', 'Go').catch(() => {});
    await fixture.hands.started.promise;
    page.agent.abortRun();
    await gone;
    const other = openAgent(fixture.url);
    const called = Promise.withResolvers<void>();
    other.agent.subscribe({ onToolCallEndEvent: () => called.resolve() });
    const joined = other.agent.connectAgent();
    await called.promise;
    expect(await other.stop({})).toMatchObject({ result: 'accepted' });
    await joined;
    judge(other.events);
    expect(other.events[0]).toMatchObject({ type: 'RUN_STARTED', threadId: 't', runId: 'run-u1' });
    expect(other.said().slice(0, 2)).toEqual(['user: Go', 'assistant: Let me see. ']);
    expect(other.events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
    const nothing = await fetch(`${fixture.url}/t/connect`, { headers: { 'x-user': 'ada' } });
    expect(nothing.status).toBe(204);
  });

  test('a client is told what another does in its thread', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    const leaving = new AbortController();
    const watch = await fetch(`${fixture.url}/t/watch`, { headers: { 'x-user': 'ada' }, signal: leaving.signal });
    const states = readChunks(watch).getReader();
    const next = async () => (await states.read()).value as unknown as { version: string; reply?: string };
    const before = await next();
    const running = openAgent(fixture.url).run('u1', 'Go');
    let state = await next();
    while (state.reply === undefined) state = await next();
    await fixture.hands.started.promise;
    fixture.hands.release.resolve('forty-two');
    await running;
    while (state.reply !== undefined) state = await next();
    expect(state.version).not.toBe(before.version);
    leaving.abort();
  });

  test('a stop names its run: another is not touched, and one that comes later is stopped', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    const page = openAgent(fixture.url);
    const running = page.run('u1', 'Go');
    await fixture.hands.started.promise;
    expect(await page.stop({ runId: 'early' })).toEqual({ result: 'recorded' });
    const later = openAgent(fixture.url);
    await later.run('u2', 'Never', 'early');
    expect(types(later.events)).toEqual(['RUN_STARTED', 'RUN_FINISHED']);
    expect(later.events.at(-1)).toMatchObject({ outcome: { type: 'cancelled' } });
    fixture.hands.release.resolve('done');
    await running;
    expect(page.events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  });

  test('a user cannot join or stop the thread of another', async () => {
    await using fixture = await openChat(kind, [CALL, { parts: [{ text: 'Done.' }] }]);
    const page = openAgent(fixture.url);
    const running = page.run('u1', 'Go');
    await fixture.hands.started.promise;
    const eve = openAgent(fixture.url, 'eve');
    expect(await eve.stop({})).toEqual({ result: 'idle' });
    expect((await fetch(`${fixture.url}/t/connect`, { headers: { 'x-user': 'eve' } })).status).toBe(204);
    expect((await fetch(`${fixture.url}/t/connect`)).status).toBe(401);
    fixture.hands.release.resolve('done');
    await running;
    expect(page.events.at(-1)).toMatchObject({ outcome: { type: 'success' } });
  });
});

test('a run that fails ends with an error, without details that are not for users', async () => {
  await using fixture = await openChat('agent', [{ status: 400, message: 'secret-key-123 is wrong' }]);
  const page = openAgent(fixture.url);
  await page.run('u1', 'Go').catch(() => {});
  judge(page.events);
  expect(page.events.at(-1)).toMatchObject({ type: 'RUN_ERROR' });
  expect(JSON.stringify(page.events)).not.toContain('secret-key-123');
});

test('a run that is requested twice runs once', async () => {
  await using fixture = await openChat('agent', [{ parts: [{ text: 'Once.' }] }]);
  const [first, second] = [openAgent(fixture.url), openAgent(fixture.url)];
  await first.run('u1', 'Go', 'same');
  await second.run('u1', 'Go', 'same');
  expect(second.said()).toEqual(['user: Go', 'assistant: Once.']);
  expect(fixture.provider.requests).toHaveLength(1);
});

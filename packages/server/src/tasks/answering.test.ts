// The right to answer a question, for every way in which an answer reaches a server.
import { createMemoryStore, type TaskRecord, type TaskStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { createAgUiHandler } from '../chat/ag-ui/ag-ui-handler.ts';
import { createChatHandler } from '../chat/chat-handler.ts';
import { createAccess } from '../http/access/access.ts';
import type { AnswerableQuestion, ApproverOptions } from '../http/access/approvers.ts';
import { type AuditEvent, type Principal, USER_RIGHTS } from '../http/access/principal.ts';
import { createTaskApi } from './task-api.ts';

const ORIGIN = 'http://localhost:4000';
const ABOUT = {
  callId: 'c1',
  tool: 'book',
  effects: 'write',
  title: 'book',
  fields: [],
  alwaysScope: 'this call only',
};
const USERS: Readonly<Record<string, Principal>> = {
  ann: { tenant: 'acme', name: 'ann', rights: USER_RIGHTS },
  bob: { tenant: 'acme', name: 'bob', rights: USER_RIGHTS },
  mute: { tenant: 'acme', name: 'mute', rights: ['read', 'start', 'cancel'] },
};

const WAYS = ['task API', 'chat', 'AG-UI'] as const;
type Way = (typeof WAYS)[number];

/** A server on which ann has started a task in chat `c`, and the task asks. */
async function openServer(rules: ApproverOptions, policy: 'queue' | 'steer' = 'steer') {
  const store = createMemoryStore();
  const audited: AuditEvent[] = [];
  const authenticate = (request: Request) => USERS[request.headers.get('x-user') ?? ''];
  const audit = (event: AuditEvent): void => void audited.push(event);
  const hooks = { 'hook-error': () => {} };
  const options = { store, authenticate, audit, agent: 'assistant', policy, hooks, ...rules };
  const chat = createChatHandler(options);
  const agUi = createAgUiHandler(options);
  const api = createTaskApi({ store, access: createAccess({ authenticate, audit, ...rules }) });
  const post = async (user: string, path: string, body: object) => {
    const handler = path.startsWith('/api/chat') ? chat : path.startsWith('/api/ag-ui') ? agUi : api;
    const headers = { 'content-type': 'application/json', 'x-user': user };
    const init = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await handler.fetch(new Request(ORIGIN + path, init));
    if (response.headers.get('content-type')?.includes('json') !== true) {
      await response.body?.cancel();
      return { status: response.status, body: {} };
    }
    return { status: response.status, body: (await response.json()) as { error?: { code: string; message: string } } };
  };
  const say = (user: string, text: string) =>
    post(user, '/api/chat', { id: 'c', messages: [{ id: text, role: 'user', parts: [{ type: 'text', text }] }] });
  await say('ann', 'Book it');
  const [task] = (await store.list({ tenant: 'acme' })).tasks;
  const question = await ask(store, task!.id);
  const current = async (): Promise<TaskRecord> => (await store.get({ tenant: 'acme', id: task!.id }))!;
  return {
    store,
    audited,
    post,
    say,
    question,
    current,
    answer: (user: string, way: Way) => {
      if (way === 'task API') return post(user, `/v1/questions/${question}`, { decision: 'yes' });
      if (way === 'chat') return post(user, '/api/chat/c/approve', { approvalId: question, approved: true });
      const resume = [{ interruptId: question, status: 'resolved', payload: { approved: true } }];
      return post(user, '/api/ag-ui', { threadId: 'c', runId: `r-${user}`, messages: [], resume });
    },
    async [Symbol.asyncDispose]() {
      for (const one of [chat, agUi, store]) await one[Symbol.asyncDispose]();
    },
  };
}

async function ask(store: TaskStore, id: string): Promise<string> {
  const claimed = await store.claim(id, { worker: 'w', session: 's', claim: 'c', leaseMs: 60_000 });
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  const question = `${id}.q`;
  await store.append(claimed.claim, {
    after: 0,
    events: [{ type: 'approval-question', id: question, at: 1, question: ABOUT }],
    asks: [{ id: question, callId: 'c1', kind: 'approve', shown: 'digest' }],
  });
  return question;
}

test.each(WAYS)('%s: an answer is in the audit, with its user, its time and the shown content', async (way) => {
  await using server = await openServer({});
  expect((await server.answer('ann', way)).status).toBeLessThan(300);
  const { id: target, startedBy } = await server.current();
  expect(startedBy).toBe('ann');
  const answered = { type: 'approve', actor: 'ann', tenant: 'acme', callId: 'c1', question: server.question };
  expect(server.audited).toEqual([
    { ...answered, target, shown: 'digest', result: 'accepted', at: expect.any(Number) as number },
  ]);
  expect((await server.current()).questions).toMatchObject([{ answer: { by: 'ann' } }]);
});

test.each(WAYS)('%s: who started a task may not answer, where that is the rule', async (way) => {
  await using server = await openServer({ starterMayAnswer: false });
  const refused = await server.answer('ann', way);
  expect(refused).toMatchObject({ status: 403, body: { error: { code: 'starter' } } });
  expect(refused.body.error?.message).toContain('You started this task');
  expect(server.audited).toMatchObject([{ actor: 'ann', result: 'refused', shown: 'digest' }]);
  expect((await server.current()).waiting).toBe(1);
  expect((await server.answer('bob', way)).status).toBeLessThan(300);
});

test.each(WAYS)('%s: approvers see the question, and only their yes is one', async (way) => {
  const seen: AnswerableQuestion[] = [];
  let say = (): unknown => false;
  const approvers = (question: AnswerableQuestion): boolean => {
    seen.push(question);
    return say() as boolean;
  };
  await using server = await openServer({ approvers });
  const broken = (): unknown => {
    throw new Error('the directory is down');
  };
  const odd: readonly (() => unknown)[] = [() => 'yes', () => 1, () => undefined, () => Promise.resolve(false), broken];
  for (const one of [() => false, ...odd]) {
    say = one;
    expect(await server.answer('bob', way)).toMatchObject({ status: 403, body: { error: { code: 'not-approver' } } });
  }
  expect(seen[0]).toMatchObject({
    id: server.question,
    tool: 'book',
    startedBy: 'ann',
    agent: 'assistant',
    about: ABOUT,
  });
  say = () => Promise.resolve(true);
  expect((await server.answer('bob', way)).status).toBeLessThan(300);
  const asked = seen.length;
  // Nothing can be answered any more: there is nothing to decide.
  expect((await server.answer('ann', 'task API')).status).toBe(409);
  expect(seen).toHaveLength(asked);
});

const SENDERS = [
  ['mute', {}, 'open'],
  ['bob', {}, 'withdrawn'],
  ['ann', { starterMayAnswer: false }, 'open'],
  ['bob', { starterMayAnswer: false }, 'withdrawn'],
  ['bob', { approvers: (): boolean => false }, 'open'],
  ['bob', { approvers: (): boolean => true }, 'withdrawn'],
] as const;

test.each(SENDERS)(
  'a message of %s to the task itself, under %j: the question is %s',
  async (user, rules, expected) => {
    await using server = await openServer(rules);
    const { id } = await server.current();
    const { status } = await server.post(user, `/v1/tasks/${id}/steer`, { message: 'Hello?' });
    expect(status).toBe(expected === 'open' ? 403 : 202);
    const { questions, commands } = await server.current();
    expect([questions![0]!.closed?.why ?? 'open', commands.length]).toEqual([expected, expected === 'open' ? 0 : 1]);
  },
);

test.each(SENDERS)('a newer message of %s, under %j: the question is %s', async (user, rules, expected) => {
  for (const policy of ['queue', 'steer'] as const) {
    await using server = await openServer(rules, policy);
    await server.say(user, 'Hello?');
    const { questions } = await server.current();
    expect(questions![0]!.closed?.why ?? 'open').toBe(expected);
    const record = await server.store.conversation({ tenant: 'acme', conversation: 'c' });
    expect(record?.waiting).toHaveLength(1);
    expect((await server.store.get({ tenant: 'acme', id: record!.waiting[0]! }))?.startedBy).toBe(user);
  }
});

test.each(['mute', 'bob'])('a task of %s in the same conversation, by the task API', async (user) => {
  await using server = await openServer({});
  const task = { agent: 'assistant', input: 'Hello?', conversation: 'c', policy: 'queue' };
  expect((await server.post(user, '/v1/tasks', task)).status).toBe(201);
  const { questions } = await server.current();
  expect(questions![0]!.closed?.why).toBe(user === 'mute' ? undefined : 'withdrawn');
});

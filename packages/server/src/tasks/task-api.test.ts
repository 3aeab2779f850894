import { type Agent, createAgent, createAgentTool, defineTool, type Tool, toText } from '@whoa/core';
import { callTools, type Planner, reply } from '@whoa/core/model';
import { createVirtualWorld } from '@whoa/core/testing';
import {
  createMemoryStore,
  createRunner,
  createTaskApprovals,
  StoreBusyError,
  type TaskStore,
  UnknownOutcomeError,
} from '@whoa/tasks';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { ORIGIN, type Served, serve } from '../../../../test/server/served.ts';
import { alterStore } from '../../../../test/tasks/altered-store.ts';
import { createAccess } from '../http/access/access.ts';
import { createLogin } from '../http/access/login.ts';
import { createTaskApi } from './task-api.ts';

const TASK = { agent: 'assistant', input: 'hello' };
const endings: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

async function create(served: Served, more: object = {}): Promise<string> {
  const { status, json } = await served.ask('ann', 'POST /v1/tasks', { ...TASK, ...more });
  expect(status).toBe(201);
  return json.task.id;
}

/** Has a worker in this process. */
function work(store: TaskStore, agent: Agent, options: object = {}): void {
  const runner = createRunner({ store, agents: { assistant: agent }, ...options });
  const serving = runner.serve();
  endings.push(async () => {
    await runner[Symbol.asyncDispose]();
    await serving;
  });
}

const createPlannedAgent = (planner: Planner, more: object = {}): Agent =>
  createAgent({ name: 'assistant', planner, ...more });

/** Waits for its cancel. */
const waiting: Planner = {
  next: (_history, { token }) =>
    new Promise((_resolve, reject) => token.onCancel((_level, reason) => reject(new Error(reason.kind)))),
};

async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test('counts, tenants and workers are shown to those who may see them', async () => {
  const served = serve();
  await create(served);
  await create(served);
  await served.ask('bob', 'POST /v1/tasks', TASK);
  work(served.store, createPlannedAgent(waiting), { worker: 'w1' });
  const counts = await until(async () => {
    const { json } = await served.ask('ann', 'GET /v1/counts');
    const { statuses } = json as unknown as { statuses: Record<string, number> };
    return statuses['running'] === 2 && statuses;
  });
  expect(counts).toMatchObject({ init: 0, running: 2, cancelled: 0 });
  expect((await served.ask('operator', 'GET /v1/tenants')).json).toEqual({ tenants: ['acme', 'other'] });
  expect((await served.ask('operator', 'GET /v1/tenants?limit=1')).json).toEqual({ tenants: ['acme'], next: 'acme' });
  const { json } = await served.ask('operator', 'GET /v1/workers');
  const { workers } = json as unknown as { workers: { holds: number; tasks: string[] }[] };
  expect(workers.map(({ holds, tasks }) => [holds, tasks.length])).toEqual([[3, 3]]);
  for (const path of ['tenants?limit=0', 'tenants?cursor=', 'workers?limit=x', 'counts?x=1']) {
    expect((await served.ask('operator', `GET /v1/${path}`)).status, path).toBe(400);
  }
});

test('a task that is past its deadline is cancelled, and a deadline that cannot be met is rejected', async () => {
  const served = serve();
  const id = await create(served, { deadline: 1_000 });
  work(served.store, createPlannedAgent(waiting));
  await until(async () => (await readStatus(served, id)) === 'cancelled');
  const { json } = await served.ask('ann', `GET /v1/tasks/${id}`);
  expect(json).toMatchObject({ deadline: 1_000, outcome: { reason: { kind: 'deadline' } } });
  for (const wrong of [{ deadline: 'soon' }, { deadline: -1 }, { deadline: 5, notBefore: 5 }]) {
    const answer = await served.ask('ann', 'POST /v1/tasks', { ...TASK, ...wrong });
    expect(answer).toMatchObject({
      status: 400,
      json: { error: { message: expect.stringContaining('deadline') as string } },
    });
  }
});

const readStatus = async (served: Served, id: string): Promise<string> =>
  (await served.ask('ann', `GET /v1/tasks/${id}`)).json.status;

test('a task is created, shown and listed, once for each key', async () => {
  const served = serve();
  const id = await create(served, { key: 'k1', priority: 5, conversation: 'c1', policy: 'queue' });
  const again = await served.ask('ann', 'POST /v1/tasks', { ...TASK, key: 'k1', conversation: 'c1' });
  expect(again).toMatchObject({ status: 200, json: { result: 'duplicate', task: { id } } });
  const other = await served.ask('ann', 'POST /v1/tasks', { ...TASK, input: 'bye', key: 'k1', conversation: 'c1' });
  expect(other).toMatchObject({ status: 409, json: { error: { code: 'other-input', task: { id } } } });
  const shown = await served.ask('ann', `GET /v1/tasks/${id}`);
  expect(shown).toMatchObject({
    status: 200,
    json: { id, tenant: 'acme', priority: 5, inputs: ['hello'], status: 'init' },
  });
  expect(shown.headers.get('cache-control')).toBe('no-store');
  await create(served);
  const listed = await served.ask('ann', 'GET /v1/tasks?conversation=c1&status=init');
  expect(listed.json.tasks).toMatchObject([{ id }]);
  expect((await served.ask('ann', 'GET /v1/conversations/c1')).json).toMatchObject({ current: id, historyLength: 0 });
});

test('a list is read page by page', async () => {
  const served = serve();
  const ids = [await create(served), await create(served), await create(served)];
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const { json } = await served.ask('ann', `GET /v1/tasks?limit=2${cursor}`);
    seen.push(...json.tasks.map(({ id }) => id));
    if (json.next === undefined) break;
    cursor = `&cursor=${encodeURIComponent(json.next)}`;
  }
  expect(seen.toSorted()).toEqual(ids.toSorted());
});

test('a task that cannot be created is rejected with the reason and what to do', async () => {
  const served = serve({ agents: ['assistant'], store: createMemoryStore({ maxReady: 2 }) });
  const post = (more: object) => served.ask('ann', 'POST /v1/tasks', { ...TASK, ...more });
  expect(await post({ agent: 'other' })).toMatchObject({ status: 400, json: { error: { code: 'unknown-agent' } } });
  expect(await post({ prioritee: 1 })).toMatchObject({ status: 400, json: { error: { message: /prioritee/ } } });
  expect(await post({ conversation: 'c1' })).toMatchObject({ status: 201 });
  expect(await post({ conversation: 'c1', policy: 'reject' })).toMatchObject({
    status: 409,
    json: { error: { code: 'rejected' } },
  });
  expect(await post({})).toMatchObject({ status: 201 });
  const full = await post({});
  expect(full).toMatchObject({ status: 429, json: { error: { code: 'full', what: 'tasks', limit: 2 } } });
  expect(full.headers.get('retry-after')).toBe('1');
});

test('each result of a cancel has its HTTP status', async () => {
  const served = serve();
  work(served.store, createPlannedAgent(waiting));
  const id = await create(served);
  await until(async () => (await readStatus(served, id)) === 'running');
  const cancel = (body: object) => served.ask('ann', `POST /v1/tasks/${id}/cancel`, body);
  const started = createMemoryStore();
  const held = serve({ store: started });
  const holding = await create(held);
  await started.claim(holding, { worker: 'w', session: 's', claim: 'c', leaseMs: 60_000 });
  const holdCancel = (body: object) => held.ask('ann', `POST /v1/tasks/${holding}/cancel`, body);
  expect(await holdCancel({ reason: 'enough' })).toMatchObject({
    status: 202,
    json: { result: 'accepted', level: 'drain', reason: { kind: 'user', by: 'ann', via: 'http', message: 'enough' } },
  });
  expect(await holdCancel({ mode: 'now', reason: 'faster' })).toMatchObject({
    status: 202,
    json: { result: 'escalated', reason: { message: 'enough' } },
  });
  expect(await holdCancel({})).toMatchObject({ status: 200, json: { result: 'unchanged' } });
  expect(await cancel({})).toMatchObject({ status: 202 });
  await until(async () => (await readStatus(served, id)) === 'cancelled');
  expect(await cancel({})).toMatchObject({ status: 409, json: { error: { code: 'too-late', status: 'cancelled' } } });
  expect(await served.ask('ann', 'POST /v1/tasks/t-nothing/cancel')).toMatchObject({ status: 404 });
  expect(held.audited.map(({ type, actor, target, result }) => [type, actor, target, result])).toEqual([
    ['cancel', 'ann', holding, 'accepted'],
    ['cancel', 'ann', holding, 'escalated'],
    ['cancel', 'ann', holding, 'unchanged'],
  ]);
});

test('a reason cannot be made to look like another’s', async () => {
  const served = serve();
  const id = await create(served);
  const forged = await served.ask('ann', `POST /v1/tasks/${id}/cancel`, { reason: { by: 'bob', kind: 'deadline' } });
  expect(forged.status).toBe(400);
  expect(await readStatus(served, id)).toBe('init');
});

test('many are cancelled page by page, after a dry run that touches none', async () => {
  const served = serve();
  const ids = await Promise.all(Array.from({ length: 5 }, () => create(served)));
  const other = await create(served, { conversation: 'c1' });
  const post = (body: object) => served.ask('ann', 'POST /v1/tasks/cancel', body);
  expect((await post({ filter: {} })).json.error.message).toContain('all: true');
  const dry = await post({ filter: { all: true }, dryRun: true });
  expect(dry.json.tasks).toHaveLength(6);
  expect(await readStatus(served, ids[0]!)).toBe('init');
  expect(served.audited).toEqual([]);
  expect((await post({ filter: { conversation: 'c1' } })).json.tasks).toMatchObject([
    { id: other, result: 'accepted' },
  ]);
  const stopped: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const { json } = await post({ filter: { all: true }, limit: 2, reason: 'all of them', ...(cursor && { cursor }) });
    expect(json.tasks.length).toBeLessThanOrEqual(2);
    stopped.push(...json.tasks.map(({ id }) => id));
    cursor = json.next;
    if (cursor === undefined) break;
  }
  expect(stopped.toSorted()).toEqual(ids.toSorted());
  expect(await Promise.all(ids.map((id) => readStatus(served, id)))).toEqual(ids.map(() => 'cancelled'));
  expect(served.audited).toHaveLength(6);
});

test('tasks are listed and stopped by agent', async () => {
  const served = serve();
  const ids = [await create(served), await create(served)];
  const other = await create(served, { agent: 'other' });
  const listed = await served.ask('ann', 'GET /v1/tasks?agent=other');
  expect(listed.json.tasks).toMatchObject([{ id: other }]);
  const stopped = await served.ask('ann', 'POST /v1/tasks/cancel', { filter: { agent: 'assistant' } });
  expect(stopped.json.tasks.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
  expect(await readStatus(served, other)).toBe('init');
});

test('a brief list has no answers, and everything else', async () => {
  const served = serve();
  const id = await create(served);
  work(served.store, createPlannedAgent({ next: () => Promise.resolve(reply('the whole story')) }));
  await expect.poll(() => readStatus(served, id)).toBe('success');
  const [whole] = (await served.ask('ann', 'GET /v1/tasks')).json.tasks;
  const [brief] = (await served.ask('ann', 'GET /v1/tasks?brief=true')).json.tasks;
  const { answer, ...rest } = (whole as unknown as { outcome: { answer: string } }).outcome;
  expect(answer).toBe('the whole story');
  expect(brief).toEqual({ ...whole, outcome: rest });
  expect((await served.ask('ann', 'GET /v1/tasks?brief=maybe')).status).toBe(400);
});

test('a client can read its identity and its rights', async () => {
  const served = serve({ agents: ['assistant'] });
  const { json } = await served.ask('ann', 'GET /v1/me');
  expect(json).toMatchObject({ name: 'ann', agents: ['assistant'], store: 'memory' });
});

test('a conversation is stopped with everything that waits in it', async () => {
  const served = serve();
  const ids = [
    await create(served, { conversation: 'c1' }),
    await create(served, { conversation: 'c1', policy: 'queue' }),
  ];
  expect(await served.ask('ann', 'POST /v1/conversations/c1/cancel')).toMatchObject({ status: 202 });
  for (const id of ids) expect(await readStatus(served, id)).toBe('cancelled');
  expect(await served.ask('ann', 'POST /v1/conversations/c1/cancel')).toMatchObject({ status: 404 });
});

function asking(callIds = ['c1']): { agent: Agent; approvals: ReturnType<typeof createTaskApprovals> } {
  const approvals = createTaskApprovals();
  const book = defineTool({
    name: 'book',
    description: 'books',
    inputSchema: z.object({}),
    effects: 'write',
    execute: () => 'booked',
  });
  const planner: Planner = {
    next: (history) => {
      const last = history.at(-1)!;
      return last.role === 'tool'
        ? reply(last.content as string)
        : callTools(callIds.map((id) => ({ id, tool: 'book', input: {} })));
    },
  };
  return { approvals, agent: createPlannedAgent(planner, { tools: [book], approve: approvals.approve }) };
}

test.each([
  [{ decision: 'yes' }, 'booked'],
  [{ decision: 'no', why: 'too dear' }, 'Not started: denied: too dear'],
])('a question in the journal is answered with %j, and nothing else answers it', async (answer, expected) => {
  const served = serve();
  const { agent, approvals } = asking();
  work(served.store, agent, { approvals });
  const id = await create(served);
  const question = await until(async () => (await served.ask('ann', 'GET /v1/questions')).json.questions[0]);
  expect(question).toMatchObject({ callId: 'c1', kind: 'approve' });
  expect((await served.ask('bob', 'GET /v1/questions')).json.questions).toEqual([]);
  for (const wrong of [`${id}.none`, id, 'none'])
    expect(await served.ask('ann', `POST /v1/questions/${wrong}`, answer)).toMatchObject({ status: 404 });
  expect(await served.ask('bob', `POST /v1/questions/${question.id}`, answer)).toMatchObject({ status: 404 });
  const listed = async () => (await served.ask('ann', 'GET /v1/tasks')).json.tasks[0];
  expect(await listed()).toMatchObject({ title: 'hello', waiting: 1, activity: { turns: 1, calls: 1 } });
  served.audited.splice(0);
  const first = await served.ask('ann', `POST /v1/questions/${question.id}`, answer);
  expect(first).toMatchObject({ status: 202, json: { result: 'accepted', question: question.id } });
  const ended = await until(async () => {
    const { json } = await served.ask('ann', `GET /v1/tasks/${id}`);
    return json.outcome !== undefined ? json : undefined;
  });
  expect(ended.outcome?.answer).toBe(expected);
  expect(await listed()).toMatchObject({ activity: { turns: 2, calls: 1 } });
  expect(served.audited).toMatchObject([
    { type: 'approve', actor: 'ann', target: id, question: question.id, result: 'accepted' },
  ]);
  expect(await served.ask('ann', `POST /v1/questions/${question.id}`, answer)).toMatchObject({
    status: 409,
    json: { error: { code: 'too-late', why: 'answered', given: { by: 'ann', value: answer } } },
  });
});

test("an agent's own question is answered with what its schema allows, and anything else is rejected before it counts", async () => {
  const served = serve();
  const when = defineTool({
    name: 'when',
    description: 'asks',
    inputSchema: z.object({}),
    answeredBy: 'user',
    answerSchema: z.object({ day: z.number() }),
  });
  const planner: Planner = {
    next: (history) => {
      const last = history.at(-1)!;
      return last.role === 'tool'
        ? reply(last.content as string)
        : callTools([{ id: 'c1', tool: 'when', input: { question: 'Which day?' } }]);
    },
  };
  work(served.store, createPlannedAgent(planner, { tools: [when] }));
  const id = await create(served);
  const question = await until(async () => (await served.ask('ann', 'GET /v1/questions')).json.questions[0]);
  expect(question).toMatchObject({ callId: 'c1', kind: 'answer' });
  for (const [wrong, why] of [
    [{ decision: 'yes' }, /a question of the kind answer needs an answer/],
    [{ answer: { day: 'soon' } }, /answer\.day: .*expected number/],
    [{ answer: { day: 1 }, error: 'x' }, /expected one of decision, answer and error/],
    [{ why: 'x' }, /expected one of/],
    [{}, /expected one of/],
  ] as const) {
    const { status, json } = await served.ask('ann', `POST /v1/questions/${question.id}`, wrong);
    expect([status, json.error.message]).toEqual([400, expect.stringMatching(why)]);
  }
  const given = { answer: { day: 3 } };
  expect(await served.ask('ann', `POST /v1/questions/${question.id}`, given)).toMatchObject({ status: 202 });
  const ended = await until(async () => {
    const { json } = await served.ask('ann', `GET /v1/tasks/${id}`);
    return json.outcome !== undefined ? json : undefined;
  });
  expect(ended.outcome?.answer).toBe('{"day":3}');
});

test('an always also answers the other questions that it covers', async () => {
  const served = serve();
  const { agent, approvals } = asking(['c1', 'c2']);
  work(served.store, agent, { approvals });
  const id = await create(served);
  const question = await until(async () => (await served.ask('ann', 'GET /v1/questions')).json.questions[0]);
  const answered = await served.ask('ann', `POST /v1/questions/${question.id}`, { decision: 'always' });
  expect(answered).toMatchObject({ status: 202 });
  await until(async () => (await readStatus(served, id)) === 'success');
  const { questions } = (await served.store.get({ tenant: 'acme', id }))!;
  expect(questions!.map(({ answer }) => answer?.by)).toEqual(['ann', 'ann']);
});

test('a running task receives its messages, and one of its calls can be stopped', async () => {
  const served = serve();
  const slow = defineTool({
    name: 'slow',
    description: 'slow',
    inputSchema: z.object({}),
    effects: 'read',
    execute: (_input, { signal }) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  });
  const planner: Planner = {
    next: (history) =>
      history.some(({ role }) => role === 'tool')
        ? reply(
            history
              .filter(({ role }) => role === 'user')
              .map(({ content }) => toText(content as string))
              .join(', '),
          )
        : callTools([{ id: 'c1', tool: 'slow', input: {} }]),
  };
  work(served.store, createPlannedAgent(planner, { tools: [slow] }));
  const id = await create(served);
  await until(async () =>
    (await served.store.read({ tenant: 'acme', id })).some(
      ({ event }) => (event as { type: string }).type === 'call-intent',
    ),
  );
  expect(await served.ask('ann', `POST /v1/tasks/${id}/steer`, { message: null })).toMatchObject({ status: 400 });
  expect(await served.ask('ann', `POST /v1/tasks/${id}/steer`, { message: 'be brief' })).toMatchObject({ status: 202 });
  expect(await served.ask('ann', `POST /v1/tasks/${id}/calls/c1/cancel`, { reason: 'too slow' })).toMatchObject({
    status: 202,
  });
  const ended = await until(async () => {
    const { json } = await served.ask('ann', `GET /v1/tasks/${id}`);
    return json.outcome !== undefined ? json : undefined;
  });
  expect(ended).toMatchObject({ status: 'success', outcome: { answer: 'hello, be brief' } });
  expect(await served.ask('ann', `POST /v1/tasks/${id}/steer`, { message: 'x' })).toMatchObject({
    status: 409,
    json: { error: { status: 'success' } },
  });
});

test('a store that is busy, or whose responses are lost, leads to a 503 with when to retry', async () => {
  const inner = createMemoryStore();
  const failing = (error: () => Error) => serve({ store: alterStore(inner, () => Promise.reject(error())) });
  for (const served of [failing(() => new StoreBusyError('out')), failing(() => new UnknownOutcomeError('create'))]) {
    for (const line of ['GET /v1/tasks', 'GET /v1/tasks/t-1', 'GET /v1/tasks/t-1/events', 'GET /v1/conversations/c1']) {
      const answer = await served.ask('ann', line);
      expect(answer.status, line).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
    }
    expect((await served.ask('ann', 'POST /v1/tasks', TASK)).status).toBe(503);
    expect((await served.ask('ann', 'POST /v1/tasks/t-1/cancel')).status).toBe(503);
    expect((await served.ask(undefined, 'GET /readyz')).status).toBe(503);
    expect((await served.ask(undefined, 'GET /healthz')).status).toBe(200);
  }
});

test('an answer that was lost once is asked for again, and the task exists once', async () => {
  const inner = createMemoryStore();
  let lost = 0;
  const store = alterStore(inner, async (name, call) => {
    const answer = await call();
    if (name === 'create' && lost++ === 0) throw new UnknownOutcomeError('create');
    return answer;
  });
  const served = serve({ store });
  await create(served);
  expect((await inner.list({ tenant: 'acme' })).tasks).toHaveLength(1);
});

test('a store that does not answer at all is not ready, and is asked one question at a time', async () => {
  const world = createVirtualWorld();
  let asked = 0;
  const store = alterStore(createMemoryStore(), (name, call) =>
    name === 'get' && ++asked > 0 ? new Promise(() => {}) : call(),
  );
  const served = serve({ store, world });
  const answers = [served.ask(undefined, 'GET /readyz'), served.ask(undefined, 'GET /readyz')];
  await world.clock.advance(2_000);
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([503, 503]);
  expect(asked).toBe(1);
  expect(world.clock.pending).toBe(0);
});

test('an unexpected error is reported to the server only', async () => {
  const served = serve({ store: alterStore(createMemoryStore(), () => Promise.reject(new Error('password=hunter2'))) });
  const answer = await served.ask('ann', 'GET /v1/tasks');
  expect(answer).toMatchObject({ status: 500, json: { error: { code: 'internal' } } });
  expect(answer.text).not.toContain('hunter2');
  expect(served.errors).toHaveLength(1);
});

test('a page logs in with a code, acts under its cookie from its own origin only, and logs out', async () => {
  const login = createLogin();
  const store = createMemoryStore();
  const access = createAccess({ authenticate: login.authenticate });
  const api = createTaskApi({ store, access, login });
  const send = (path: string, body: object, headers: Record<string, string>) =>
    api.fetch(
      new Request(ORIGIN + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }),
    );
  const code = login.createCode({ tenant: 'acme', name: 'ann', rights: ['start', 'read'] });
  expect((await send('/v1/login', { code }, {})).status).toBe(403);
  expect((await send('/v1/login', { code }, { origin: 'https://evil.example' })).status).toBe(403);
  const entered = await send('/v1/login', { code }, { origin: ORIGIN });
  expect(entered.status).toBe(204);
  expect((await send('/v1/login', { code }, { origin: ORIGIN })).status).toBe(401);
  const cookie = entered.headers.get('set-cookie')!.split(';')[0]!;
  expect((await send('/v1/tasks', TASK, { cookie, origin: ORIGIN })).status).toBe(201);
  for (const origin of [undefined, 'https://evil.example', 'http://localhost:4001', 'null']) {
    const forged = await send('/v1/tasks', TASK, { cookie, ...(origin !== undefined && { origin }) });
    expect(forged.status, origin).toBe(403);
  }
  expect((await store.list({ tenant: 'acme' })).tasks).toHaveLength(1);
  expect((await send('/v1/logout', {}, { cookie })).status).toBe(403);
  expect((await send('/v1/logout', {}, { cookie, origin: ORIGIN })).status).toBe(204);
  expect((await send('/v1/tasks', TASK, { cookie, origin: ORIGIN })).status).toBe(401);
});

test('a page of a listed origin may ask and read, one of another may not', async () => {
  const page = 'https://app.example';
  const { api } = serve({ origins: [page] });
  const preflight = (origin: string) =>
    api.fetch(new Request(`${ORIGIN}/v1/tasks`, { method: 'OPTIONS', headers: { origin } }));
  const allowed = await preflight(page);
  expect(allowed.status).toBe(204);
  expect(allowed.headers.get('access-control-allow-origin')).toBe(page);
  expect(allowed.headers.get('access-control-allow-headers')).toContain('authorization');
  const refused = await preflight('https://evil.example');
  expect(refused.headers.get('access-control-allow-origin')).toBeNull();
});

test('a question of a sub-agent has its own call id', async () => {
  const served = serve();
  const { agent: helper, approvals } = asking();
  const planner: Planner = {
    next: (history) => {
      const last = history.at(-1)!;
      return last.role === 'tool'
        ? reply(last.content as string)
        : callTools([{ id: 'c1', tool: 'helper', input: { task: 'book' } }]);
    },
  };
  const tools = [createAgentTool(helper, { name: 'helper', description: 'Helps' }) as Tool];
  work(served.store, createPlannedAgent(planner, { tools }), { approvals });
  const id = await create(served);
  const question = await until(async () => (await served.ask('ann', 'GET /v1/questions')).json.questions[0]);
  expect(question.callId).toBe('c1/c1');
  expect(await served.ask('ann', `POST /v1/questions/${question.id}`, { decision: 'yes' })).toMatchObject({
    status: 202,
  });
  const { outcome } = await until(async () => {
    const { json } = await served.ask('ann', `GET /v1/tasks/${id}`);
    return json.outcome !== undefined ? json : undefined;
  });
  expect(outcome?.answer).toBe('booked');
});

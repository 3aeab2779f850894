// Every route, for every kind of user.
import { createMemoryStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { type Person, type Served, serve } from '../../../../test/server/served.ts';
import { createLogin } from '../http/access/login.ts';
import type { TaskApi } from './task-api.ts';

type Route = TaskApi['routes'][number];

/** Data that no other user may ever see. */
const SECRET = 'the-secret-plan';

/** A valid request for each route. A route without a line here fails the test. */
const BODIES: Readonly<Record<string, unknown>> = {
  'post /v1/tasks': { agent: 'assistant', input: 'hello' },
  'get /v1/tasks': undefined,
  'get /v1/tasks/{id}': undefined,
  'post /v1/tasks/{id}/cancel': {},
  'post /v1/conversations/{id}/cancel': {},
  'post /v1/tasks/cancel': { filter: { all: true }, dryRun: true },
  'post /v1/tasks/{id}/calls/{callId}/cancel': {},
  'get /v1/questions': undefined,
  'get /v1/questions/closed': undefined,
  'post /v1/questions/{id}': { decision: 'yes' },
  'post /v1/tasks/{id}/steer': { message: 'be brief' },
  'get /v1/tasks/{id}/events': undefined,
  'get /v1/conversations/{id}': undefined,
  'get /v1/me': undefined,
  'get /v1/counts': undefined,
  'get /v1/tenants': undefined,
  'get /v1/workers': undefined,
  'get /v1/fleet': undefined,
  'get /v1/queues': undefined,
  'post /v1/pause': { target: { agent: 'assistant' }, paused: true },
  'post /v1/halt': { target: { tenant: 'nobody-has-this-name' } },
  'post /v1/tasks/{id}/requeue': {},
  'post /v1/erase': { tenant: 'nobody-has-this-name' },
  'get /metrics': undefined,
  'get /healthz': undefined,
  'get /readyz': undefined,
  'get /openapi.json': undefined,
  'post /v1/login': { code: 'x' },
  'post /v1/logout': {},
};
const PUBLIC = ['/healthz', '/readyz', '/openapi.json', '/v1/login', '/v1/logout'];

const describeRoute = ({ method, path }: Route): string => `${method} ${path}`;
const { routes } = serve({ login: createLogin(), metrics: () => SECRET }).api;
const guarded = routes.filter(({ right }) => right !== 'public');

/** A server that holds an ended task of acme in a conversation, with a secret and a question in its journal, and one more. */
async function setUp(): Promise<Served & { readonly line: (route: Route) => string }> {
  const store = createMemoryStore();
  const served = serve({ store, login: createLogin(), metrics: () => SECRET });
  const task = { tenant: 'acme', agent: 'secret-agent', input: SECRET, conversation: 'c1', key: SECRET };
  const created = await store.create(task);
  const { id } = (created as { task: { id: string } }).task;
  const worker = { worker: 'w', session: 's', claim: 'c', leaseMs: 60_000 };
  const claimed = await store.claim(id, worker);
  if (claimed.result !== 'claimed') throw new Error(claimed.result);
  const { claim } = claimed;
  await store.append(claim, {
    after: 0,
    events: [{ type: 'approval-question', id: `${id}.q1`, question: { callId: 'call1', tool: SECRET } }],
    asks: [{ id: `${id}.q1`, callId: 'call1', kind: 'approve', shown: SECRET }],
  });
  await store.finish(claim, { status: 'success', answer: SECRET, newMessages: [SECRET] });
  // One that waits, so that the conversation has something to stop.
  await store.create({ ...task, key: 'next' });
  const line = (route: Route): string => {
    const isConversation = route.path.includes('conversations');
    const named = isConversation ? 'c1' : route.path.includes('questions') ? `${id}.q1` : id;
    const path = route.path.replace('{id}', named).replace('{callId}', 'call1');
    return `${route.method.toUpperCase()} ${path}`;
  };
  return { ...served, line };
}

test('the table has every route, and every route names its right', () => {
  expect(routes.map(describeRoute).toSorted()).toEqual(Object.keys(BODIES).toSorted());
  expect(
    routes
      .filter(({ right }) => right === 'public')
      .map(({ path }) => path)
      .toSorted(),
  ).toEqual(PUBLIC.toSorted());
});

test('the document has every route with its right, and nothing is served that is not in it', async () => {
  const { ask } = await setUp();
  const { json } = await ask(undefined, 'GET /openapi.json');
  const documented = Object.entries(json.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { 'x-whoa-right': right }]) => ({ method, path, right })),
  );
  expect(documented.toSorted(byName)).toEqual([...routes].toSorted(byName));
  for (const { path } of routes) {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'PROPFIND']) {
      expect((await ask('ann', `${method} ${path}`)).status, `${method} ${path}`).toBe(404);
    }
  }
});

const byName = (a: { path: string; method: string }, b: { path: string; method: string }): number =>
  `${a.path} ${a.method}`.localeCompare(`${b.path} ${b.method}`);

test.each(guarded.map((route) => [describeRoute(route), route] as const))(
  '%s: a request without valid credentials is rejected',
  async (name, route) => {
    const { ask, line } = await setUp();
    for (const headers of [
      {},
      { authorization: 'Bearer whoa_wrong' },
      { cookie: 'whoa=wrong', origin: 'http://localhost:4000' },
    ]) {
      const answer = await ask(undefined, line(route), BODIES[name], headers);
      expect(answer).toMatchObject({ status: 401, json: { error: { code: 'unauthenticated' } } });
      expect(answer.text).not.toContain(SECRET);
    }
  },
);

test.each(guarded.map((route) => [describeRoute(route), route] as const))(
  '%s: too few rights are too few',
  async (name, route) => {
    const { ask, line, audited } = await setUp();
    const without: Person[] =
      route.right === 'read'
        ? ['nothing', 'starter']
        : route.right === 'start'
          ? ['nothing', 'reader']
          : route.right === 'operate' || route.right === 'halt'
            ? ['nothing', 'reader', 'starter', 'ann', 'bob']
            : ['nothing', 'reader', 'starter'];
    for (const person of without) {
      const answer = await ask(person, line(route), BODIES[name]);
      expect(answer, person).toMatchObject({ status: 403, json: { error: { code: 'forbidden' } } });
      expect(answer.text).not.toContain(SECRET);
    }
    expect(audited).toEqual([]);
  },
);

/** The routes for one tenant. */
const ofTenant = guarded.filter(({ right }) => right !== 'operate' && right !== 'halt');

test.each(ofTenant.map((route) => [describeRoute(route), route] as const))(
  '%s: another tenant finds nothing',
  async (name, route) => {
    const { ask, line, store } = await setUp();
    const before = JSON.stringify((await store.list({ tenant: 'acme' })).tasks);
    const answer = await ask('bob', line(route), BODIES[name]);
    expect(answer.status).toBe(
      route.path.includes('{id}') ? 404 : route.method === 'post' && route.path === '/v1/tasks' ? 201 : 200,
    );
    expect(answer.text).not.toMatch(/the-secret-plan|secret-agent|acme/);
    // A missing resource gets the same response.
    if (route.path.includes('{id}')) {
      const missing = line(route).replace(/(tasks|conversations)\/[^/]+/, '$1/t-nothing');
      expect((await ask('bob', missing, BODIES[name])).text).toBe(answer.text);
    }
    // Naming the tenant helps only users with the right.
    const named = await ask('bob', `${line(route)}?tenant=acme`, BODIES[name]);
    expect([400, 403]).toContain(named.status);
    expect(named.text).not.toContain(SECRET);
    expect(JSON.stringify((await store.list({ tenant: 'acme' })).tasks)).toBe(before);
  },
);

test.each(guarded.map((route) => [describeRoute(route), route] as const))('%s: who may, may', async (name, route) => {
  const { ask, line, errors } = await setUp();
  const answer = await ask(
    route.right === 'operate' || route.right === 'halt' ? 'operator' : 'ann',
    line(route),
    BODIES[name],
  );
  // The task has ended, so these are rejected as too late, which also counts as authorized.
  expect([200, 201, 202, 409]).toContain(answer.status);
  expect(errors).toEqual([]);
});

test('an operator sees, stops and requeues what belongs to others, and does nothing else to it', async () => {
  const { ask, line } = await setUp();
  for (const route of guarded) {
    const { status } = await ask('operator', `${line(route)}?tenant=acme`, BODIES[describeRoute(route)]);
    const isAllowed = route.right === 'read' || route.right === 'cancel' || route.path.endsWith('/requeue');
    expect(isAllowed ? [200, 202, 409] : [400], describeRoute(route)).toContain(status);
  }
});

test('public routes refuse foreign pages and names too', async () => {
  const { ask } = await setUp();
  for (const { method, path } of routes.filter(({ right }) => right === 'public')) {
    const line = `${method.toUpperCase()} ${path}`;
    const foreign = await ask(undefined, line, {}, { origin: 'https://evil.example' });
    expect(foreign, line).toMatchObject({ status: 403, json: { error: { code: 'origin-refused' } } });
    expect((await ask(undefined, line, {}, { host: 'evil.example' })).status, line).toBe(421);
  }
});

test('no secret of a caller comes back, whatever they did wrong', async () => {
  const { ask, line, tokens, errors, audited } = await setUp();
  const texts: string[] = [];
  for (const route of routes) {
    texts.push((await ask('ann', line(route), '{"a":')).text, (await ask('ann', `${line(route)}?x=1`)).text);
  }
  const everything = JSON.stringify([texts, errors.map(String), audited]);
  expect(everything).not.toContain(tokens.ann);
  expect(everything.length).toBeGreaterThan(1_000);
});

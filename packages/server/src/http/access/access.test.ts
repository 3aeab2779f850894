import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { ORIGIN } from '../../../../../test/server/served.ts';
import { type AccessOptions, createAccess } from './access.ts';
import { type Principal, USER_RIGHTS } from './principal.ts';

const ANN: Principal = { tenant: 'acme', name: 'ann', rights: USER_RIGHTS };

const setUp = (options: Partial<AccessOptions> = {}) => createAccess({ authenticate: () => ANN, ...options });

const request = (headers: Record<string, string> = {}, init: RequestInit & { url?: string } = {}): Request =>
  new Request(init.url ?? `${ORIGIN}/v1/tasks`, { headers, ...init });

async function readCode(answer: unknown): Promise<string> {
  if (!(answer instanceof Response)) return 'admitted';
  return ((await answer.json()) as { error: { code: string } }).error.code;
}

test('a principal with the right is admitted; one without it, or no principal, is not', async () => {
  expect(await setUp().authorize(request(), 'read')).toBe(ANN);
  const nobody = await setUp({ authenticate: () => null }).authorize(request(), 'read');
  expect(nobody).toMatchObject({ status: 401 });
  expect((nobody as Response).headers.get('www-authenticate')).toBe('Bearer');
  expect(await setUp().authorize(request(), 'operate')).toMatchObject({ status: 403 });
  expect(await setUp({ authenticate: () => 'ann' }).authorize(request(), 'cancel')).toMatchObject({ tenant: 'ann' });
});

test('an error in authenticate rejects the request without details of the error', async () => {
  const errors: unknown[] = [];
  const broken = setUp({
    authenticate: () => Promise.reject(new Error('secret words')),
    onError: (error) => errors.push(error),
  });
  const answer = (await broken.authorize(request(), 'read')) as Response;
  expect(answer.status).toBe(500);
  expect(await answer.text()).not.toContain('secret');
  expect(errors).toHaveLength(1);
});

test.each([
  ['http://localhost:4000', undefined, 'admitted'],
  ['http://127.0.0.1', undefined, 'admitted'],
  ['http://[::1]:9', undefined, 'admitted'],
  ['http://evil.example', undefined, 'host-refused'],
  ['http://localhost.evil.example', undefined, 'host-refused'],
  ['http://api.example:8080', ['api.example'], 'admitted'],
  ['http://api.example:8080', ['api.example:8081'], 'host-refused'],
  ['http://localhost', ['api.example'], 'host-refused'],
  ['http://anything.example', 'any', 'admitted'],
] as const)('under the name %s, with hosts %j: %s', async (url, hosts, expected) => {
  expect(await readCode(await setUp({ hosts }).authorize(request({}, { url }), 'read'))).toBe(expected);
  const byHeader = request({ host: new URL(url).host }, { url: 'http://localhost' });
  const isOwn = expected === 'admitted';
  expect((await readCode(await setUp({ hosts }).authorize(byHeader, 'read'))) === 'admitted').toBe(isOwn);
});

const PAGE = 'https://app.example';

test.each([
  [{ origin: ORIGIN }, 'GET', 'admitted'],
  [{ origin: PAGE }, 'POST', 'admitted'],
  [{ origin: 'https://evil.example' }, 'GET', 'origin-refused'],
  [{ origin: 'https://evil.example', authorization: 'Bearer x' }, 'POST', 'origin-refused'],
  [{ origin: 'http://localhost:4001' }, 'POST', 'origin-refused'],
  [{ origin: 'https://localhost:4000' }, 'POST', 'origin-refused'],
  [{ origin: 'null' }, 'POST', 'origin-refused'],
  // Only a browser's cookies can be misused, and every browser sends the origin of a change.
  [{ cookie: 'whoa=1' }, 'POST', 'origin-refused'],
  [{ cookie: 'whoa=1' }, 'GET', 'admitted'],
  [{ cookie: 'whoa=1', origin: ORIGIN }, 'POST', 'admitted'],
  [{ cookie: 'whoa=1', authorization: 'Bearer x' }, 'POST', 'admitted'],
  [{}, 'POST', 'admitted'],
] as const)('a request with %j by %s: %s', async (headers, method, expected) => {
  const access = setUp({ origins: [PAGE] });
  expect(await readCode(await access.authorize(request(headers, { method }), 'read'))).toBe(expected);
});

test('only listed origins may read responses', () => {
  const access = setUp({ origins: [PAGE] });
  expect(access.getCorsHeaders(request({ origin: PAGE }))).toMatchObject({ 'access-control-allow-origin': PAGE });
  expect(access.getCorsHeaders(request({ origin: 'https://evil.example' }))).toEqual({});
  const preflight = request({ origin: PAGE, 'access-control-request-headers': 'x-locale,content-type' });
  expect(access.getCorsHeaders(preflight)).toMatchObject({
    'access-control-allow-credentials': 'true',
    'access-control-allow-headers': 'x-locale,content-type',
    vary: expect.stringContaining('origin') as string,
  });
  expect(access.getCorsHeaders(request({ origin: 'https://evil.example' }))).toEqual({});
  expect(() => setUp({ origins: ['*'] })).toThrow("origins: '*' is not an origin");
  expect(() => setUp({ origins: ['app.example/'] })).toThrow("origins: 'app.example/' is not an origin");
});

test('a principal with too many requests learns when to try again, and others are not affected', async () => {
  const { clock } = createVirtualWorld();
  const authenticate = (one: Request): Principal => ({ ...ANN, name: one.headers.get('x-name') ?? 'ann' });
  const access = setUp({ authenticate, clock, limits: { requestsPerSecond: 2, requestsBurst: 3 } });
  const requestAccess = () => access.authorize(request(), 'read');
  for (let i = 0; i < 3; i++) expect(await requestAccess()).toMatchObject(ANN);
  const answered: unknown[] = [];
  const early = requestAccess().then((answer) => answered.push(answer));
  expect(await access.authorize(request({ 'x-name': 'bob' }), 'read')).toMatchObject({ name: 'bob' });
  await clock.advance(999);
  expect(answered).toEqual([]);
  await clock.advance(1);
  await early;
  const [refused] = answered as [Response];
  expect(refused.status).toBe(429);
  expect(refused.headers.get('retry-after')).toBe('1');
  for (let i = 0; i < 2; i++) expect(await requestAccess()).toMatchObject(ANN);
  const again = requestAccess();
  await clock.advance(1_000);
  expect(await again).toMatchObject({ status: 429 });
  expect(clock.pending).toBe(0);
});

test('rejected clients that disconnect are dropped, and the number of delayed responses is bounded', async () => {
  const { clock } = createVirtualWorld();
  const access = setUp({ clock, limits: { requestsPerSecond: 1, requestsBurst: 1 } });
  await access.authorize(request(), 'read');
  const [gone, goneBefore] = [new AbortController(), AbortSignal.abort()];
  const left = access.authorize(request({}, { signal: gone.signal }), 'read');
  await flushMicrotasks();
  expect(clock.pending).toBe(1);
  gone.abort();
  for (const answer of [await left, await access.authorize(request({}, { signal: goneBefore }), 'read')])
    expect(answer).toMatchObject({ status: 429 });
  expect(clock.pending).toBe(0);
  const held = Array.from({ length: 1_000 }, () => access.authorize(request(), 'read'));
  await flushMicrotasks();
  expect(await access.authorize(request(), 'read')).toMatchObject({ status: 429 });
  await clock.advance(1_000);
  expect(clock.pending).toBeGreaterThan(990);
  await clock.advance(10_000);
  await Promise.all(held);
  expect(clock.pending).toBe(0);
});

test('streams are counted for each principal until they are closed', () => {
  const access = setUp({ limits: { maxStreams: 1 } });
  const first = access.openStream(ANN) as Disposable;
  expect(access.openStream(ANN)).toMatchObject({ status: 429 });
  expect(access.openStream({ ...ANN, tenant: 'other' })).not.toBeInstanceOf(Response);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(access.openStream(ANN)).not.toBeInstanceOf(Response);
  expect(access.openStream(ANN)).toMatchObject({ status: 429 });
});

test('a body is read completely, or rejected by its declared or its real size', async () => {
  const access = setUp({ limits: { maxBodyBytes: 10 } });
  const post = (body: string | ReadableStream, headers = {}) =>
    request(headers, { method: 'POST', body, duplex: 'half' } as RequestInit);
  const chunks = (count: number) =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        if (count-- === 0) controller.close();
        else controller.enqueue(new TextEncoder().encode('"123"'));
      },
    });
  expect(await ((await access.readBody(post('{"a":1}'))) as Request).json()).toEqual({ a: 1 });
  expect(await ((await access.readBody(post(chunks(2)))) as Request).text()).toBe('"123""123"');
  expect(await access.readBody(post(chunks(3)))).toMatchObject({ status: 413 });
  expect(await access.readBody(post('"12345678901"', { 'content-length': '13' }))).toMatchObject({ status: 413 });
  const broken = new ReadableStream({ pull: () => Promise.reject(new Error('gone')) });
  expect(await readCode(await access.readBody(post(broken)))).toBe('body-cut');
});

test('a principal may have few large bodies on their way, and small ones at any time', async () => {
  const authenticate = (one: Request): Principal => ({ ...ANN, name: one.headers.get('x-name') ?? 'ann' });
  const access = setUp({ authenticate });
  const ends: (() => void)[] = [];
  const post = async (bytes: number, name = 'ann'): Promise<Request | Response> => {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(`"${'x'.repeat(bytes)}"`));
        ends.push(() => controller.close());
      },
    });
    const sent = request({ 'x-name': name }, { method: 'POST', body, duplex: 'half' } as RequestInit);
    await access.authorize(sent, 'start');
    return access.readBody(sent);
  };
  const [KB, LARGE] = [1_024, 20 * 1_024];
  const held = Array.from({ length: 16 }, () => post(LARGE));
  await flushMicrotasks();
  expect(await readCode(await post(LARGE))).toBe('too-many-bodies');
  const others = [post(LARGE, 'bob'), post(KB)];
  await flushMicrotasks();
  for (const end of ends.filter((_, index) => index !== 16)) end();
  for (const read of await Promise.all([...held, ...others])) expect(read).toBeInstanceOf(Request);
  const next = post(LARGE);
  await flushMicrotasks();
  ends.at(-1)!();
  expect(await next).toBeInstanceOf(Request);
});

test('a body that is nested too deep is rejected before anything walks through it', async () => {
  const post = (body: string) => setUp().readBody(request({}, { method: 'POST', body }));
  expect(await readCode(await post('['.repeat(1_000_000)))).toBe('body-too-deep');
  expect(await readCode(await post('{"a":'.repeat(101)))).toBe('body-too-deep');
  expect(await readCode(await post(JSON.stringify(`\\"${'['.repeat(1_000)}`)))).toBe('admitted');
  expect(await readCode(await post('[]'.repeat(1_000)))).toBe('admitted');
});

test('the audit lists who did what to whose task, and its own failure stops nothing', () => {
  const events: unknown[] = [];
  const errors: unknown[] = [];
  const access = setUp({ clock: createVirtualWorld().clock, audit: (event) => events.push(event) });
  access.audit(ANN, { type: 'cancel', tenant: 'acme', target: 't-1', result: 'accepted' });
  access.audit(ANN, { type: 'cancel', tenant: 'other', target: 't-2', result: 'accepted' });
  expect(events).toEqual([
    { type: 'cancel', at: 1_700_000_000_000, actor: 'ann', tenant: 'acme', target: 't-1', result: 'accepted' },
    expect.objectContaining({ actor: 'ann', actorTenant: 'acme', tenant: 'other' }),
  ]);
  const broken = setUp({
    audit: () => {
      throw new Error('disk full');
    },
    onError: (error) => errors.push(error),
  });
  broken.audit(ANN, { type: 'cancel', tenant: 'acme', target: 't-1', result: 'accepted' });
  expect(errors).toHaveLength(1);
});

test('an authorizer that does not decide in time denies, and a later yes changes nothing', async () => {
  const { clock } = createVirtualWorld();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const access = setUp({ clock, approvers: () => promise });
  const question = { id: 't-a.q', callId: 'c', kind: 'approve', tenant: 'acme', task: 't-a', agent: 'a' } as const;
  const asked = access.refuseAnswer(ANN, () => Promise.resolve([question]));
  await clock.advance(30_000);
  expect(await asked).toMatchObject({ code: 'not-approver' });
  resolve(true);
  expect(await access.refuseAnswer(ANN, () => Promise.resolve([question]))).toBeUndefined();
  expect(clock.pending).toBe(0);
});

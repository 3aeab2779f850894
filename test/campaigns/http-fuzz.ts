// Requests generated from the OpenAPI document of the task API: valid, almost valid, and invalid.
import {
  createAccess,
  createLogin,
  createTaskApi,
  createToken,
  createTokenAuthenticator,
  type TaskApi,
  USER_RIGHTS,
} from '@whoa/server';
import type { TaskStore } from '@whoa/tasks';
import fc from 'fast-check';

interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly combineAuthenticators?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly responses: readonly string[];
}

export interface FuzzOptions {
  readonly store: TaskStore;
  readonly requests: number;
  readonly seed: number;
}

const ORIGIN = 'http://localhost';
const HOSTILE_INPUTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  '\udc00x',
  '💥',
  '../..',
  '%00',
  '%zz',
  '%E0%A4%A',
  '__proto__',
  'constructor',
  'toString',
  "'; DROP TABLE tasks; --",
  '*',
  '{}',
  '[',
  'null',
  '-1',
  '1e999',
  'NaN',
  '\u202e',
  '\r\nx: y',
  '9'.repeat(40),
  'x'.repeat(201),
  'x'.repeat(10_000),
  't-',
  't-x',
  'tzzzzzzzz-x',
  'end',
  '0/x',
  '1e3/x',
  '1.5/',
  '1/\0',
  'init:',
  'init:0/x',
  'running:9/t-x',
];
const BODIES: readonly string[] = [
  '',
  '{',
  '[]',
  'null',
  '1e999',
  '"x"',
  '\ufeff{}',
  '{"a":1e999}',
  '['.repeat(5_000),
  '{"a":'.repeat(5_000),
  '{"__proto__":{"x":1}}',
  '{"agent":"a","agent":"b","input":1}',
  '\0',
  '\ud800',
];
const nasty = fc.constantFrom(...HOSTILE_INPUTS);
const junk: fc.Arbitrary<unknown> = fc.oneof(
  nasty,
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.double(),
);

/** Sends all of them. Returns how often each status came; throws, with the request, on the first unexpected one. */
export async function fuzzTaskApi({ store, requests, seed }: FuzzOptions): Promise<Record<string, number>> {
  const { token, sha256 } = createToken();
  const login = createLogin();
  const tokens = createTokenAuthenticator([
    { sha256, tenant: 'acme', name: 'fuzz', rights: [...USER_RIGHTS, 'operate', 'halt'] },
  ]);
  const limits = { requestsPerSecond: 1e9, requestsBurst: 1e9, maxBodyBytes: 50_000 };
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const access = createAccess({ authenticate: tokens, limits, onError });
  const api = createTaskApi({ store, access, login, onError });
  const ids = await createTasks(store);
  const counts: Record<string, number> = {};
  const property = fc.asyncProperty(
    await createRequests(api, ids),
    async ({ method, path, headers, body, responses }) => {
      const authorization = `Bearer ${token}`;
      const request = new Request(ORIGIN + path, {
        method,
        headers: { authorization, ...headers },
        ...(body !== undefined && { body }),
      });
      const response = await api.fetch(request);
      const { status } = response;
      counts[status] = (counts[status] ?? 0) + 1;
      if (errors.length > 0) throw new Error(`reported: ${String(errors.pop())}`);
      if (status >= 500) throw new Error(`status ${status}: ${await response.text()}`);
      await checkAnswer(response, responses);
    },
  );
  await fc.assert(property, { numRuns: requests, seed, endOnFailure: true });
  return counts;
}

/** Every refusal has the one shape, and every status is in the document. */
async function checkAnswer(response: Response, documented: readonly string[]): Promise<void> {
  const { status, headers } = response;
  if (headers.get('content-type') === 'text/event-stream') {
    await response.body!.cancel();
    return;
  }
  const text = await response.text();
  if (status >= 400) {
    const { error } = JSON.parse(text) as { error: { code: string; message: string } };
    if (!/^[a-z-]+$/.test(error.code) || error.message === '') throw new Error(`no refusal: ${text}`);
    // The path may have led nowhere, or elsewhere.
    if (error.code === 'unknown-route') return;
  }
  if (!documented.includes(`${status}`)) throw new Error(`status ${status} is not in the document: ${text}`);
}

async function createTasks(store: TaskStore): Promise<string[]> {
  const ids: string[] = [];
  for (const conversation of ['c1', 'c2', undefined]) {
    for (const key of ['k1', 'k2', 'k3']) {
      const receipt = await store.create(
        { tenant: 'acme', agent: 'assistant', input: key, key, conversation },
        { policy: 'queue' },
      );
      if (receipt.result === 'created') ids.push(receipt.task.id);
    }
  }
  return ids;
}

async function createRequests(api: TaskApi, ids: readonly string[]): Promise<fc.Arbitrary<Sent>> {
  const document = (await (await api.fetch(new Request(`${ORIGIN}/openapi.json`))).json()) as {
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      createRequest({ path, method: method.toUpperCase(), operation, ids }),
    ),
  );
  return fc.oneof(...operations);
}

interface Described {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
  readonly ids: readonly string[];
}

function createRequest({ path, method, operation, ids }: Described): fc.Arbitrary<Sent> {
  const { parameters = [], requestBody, responses } = operation;
  const schema = requestBody?.content['application/json']?.schema;
  const known = fc.constantFrom(...ids, 'c1', 'c2');
  const inPath = Object.fromEntries(
    parameters
      .filter((one) => one.in === 'path')
      .map(({ name }) => [name, often(known, fc.oneof(nasty, fc.string()))] as const),
  );
  const inQuery = Object.fromEntries(
    parameters
      .filter((one) => one.in === 'query')
      .map(({ name, schema: one }) => [name, often(valueFor(one), junk)] as const),
  );
  return fc
    .record({
      names: fc.record(inPath),
      query: fc.record(inQuery, { requiredKeys: [] }),
      extra: often(fc.constant(''), fc.constantFrom('&x=1', '&limit=1&limit=2', '&%', '&=', '&tenant=other')),
      headers: createHeaders(schema !== undefined),
      body:
        schema === undefined
          ? fc.constant(undefined)
          : often(
              valueFor(schema).map((value) => JSON.stringify(value) ?? ''),
              fc.constantFrom(...BODIES),
            ),
    })
    .map(({ names, query, extra, headers, body }) => ({
      method,
      path: fill(path, names) + toSearch(query, extra),
      headers,
      responses: Object.keys(responses),
      ...(body !== undefined && { body }),
    }));
}

/** Mostly the one, now and then the other. */
function often<T, U>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<U>): fc.Arbitrary<T | U> {
  return fc.oneof({ arbitrary: usual, weight: 7 }, { arbitrary: other, weight: 1 });
}

function createHeaders(hasBody: boolean): fc.Arbitrary<Record<string, string>> {
  const json = hasBody ? { 'content-type': 'application/json' } : {};
  return often(
    fc.constant(json),
    fc.constantFrom<Record<string, string>>(
      {},
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json; charset=utf-16' },
      { ...json, 'last-event-id': '1' },
      { ...json, 'last-event-id': 'end' },
      { ...json, 'last-event-id': '-5' },
      { ...json, origin: 'https://evil.example' },
      { ...json, origin: ORIGIN },
      { ...json, cookie: 'whoa=1; =; ;;' },
      { ...json, host: 'evil.example' },
      { ...json, host: ':' },
      { ...json, authorization: 'Bearer x' },
      { ...json, 'content-length': '99999999' },
      { ...json, 'content-length': 'x' },
    ),
  );
}

function fill(path: string, names: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = names[name]!;
    // Some as they are: a path may be broken in ways that no encoder makes.
    return /^[%\w-]+$/.test(value) ? value : encodeURIComponent(value.toWellFormed());
  });
}

function toSearch(query: Readonly<Record<string, unknown>>, extra: string): string {
  const pairs = Object.entries(query).map(([name, value]) => {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
    return `${name}=${encodeURIComponent(text.toWellFormed())}`;
  });
  return `?${pairs.join('&')}${extra}`;
}

/** A value for a schema, sometimes with something else in its place. */
function valueFor(schema: Schema): fc.Arbitrary<unknown> {
  return often(exactly(schema), junk);
}

function exactly(schema: Schema): fc.Arbitrary<unknown> {
  const choices = schema.combineAuthenticators ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map(valueFor));
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  switch (Array.isArray(schema.type) ? (schema.type as readonly string[])[0] : schema.type) {
    case 'string':
      return fc.oneof(
        fc.constantFrom('c1', 'assistant', 'k1', 'a'),
        fc.string({ unit: 'grapheme', maxLength: Math.min(schema.maxLength ?? 30, 30) }),
      );
    case 'integer':
    case 'number':
      return fc.integer({
        min: Math.max(schema.minimum ?? -1_000, -(2 ** 31)),
        max: Math.min(schema.maximum ?? 1_000, 2 ** 31),
      });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(schema.items === undefined ? junk : valueFor(schema.items), { maxLength: 4 });
    case 'object': {
      const properties = Object.entries(schema.properties ?? {}).map(([name, one]) => [name, valueFor(one)] as const);
      const whole = fc.record(Object.fromEntries(properties), { requiredKeys: [...(schema.required ?? [])] });
      return often(
        whole,
        whole.chain((one) => fc.record({ ...mapped(one), extra: junk })),
      );
    }
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function mapped(value: object): Record<string, fc.Arbitrary<unknown>> {
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fc.constant(one)]));
}

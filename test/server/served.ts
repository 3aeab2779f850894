import { createMemoryStore, type TaskStore } from '@whoa/tasks';
import { type AuditEvent, type Right, USER_RIGHTS } from '../../packages/server/src/http/access/principal.ts';
import {
  type AccessOptions,
  createAccess,
  createTaskApi,
  createToken,
  createTokenAuthenticator,
  type TaskApi,
} from '../../packages/server/src/index.ts';

type TaskApiOptions = Parameters<typeof createTaskApi>[0];

export const ORIGIN = 'http://localhost:4000';

/** Who knocks in tests. */
const PEOPLE = {
  ann: { tenant: 'acme', rights: USER_RIGHTS },
  bob: { tenant: 'other', rights: USER_RIGHTS },
  reader: { tenant: 'acme', rights: ['read'] },
  starter: { tenant: 'acme', rights: ['start'] },
  nothing: { tenant: 'acme', rights: [] },
  operator: { tenant: 'operations', rights: [...USER_RIGHTS, 'operate', 'halt'] },
  /** Operates, and may not halt. */
  onCall: { tenant: 'operations', rights: [...USER_RIGHTS, 'operate'] },
  /** Has the right to halt, and sees one tenant only. */
  halter: { tenant: 'acme', rights: [...USER_RIGHTS, 'halt'] },
} as const satisfies Record<string, { tenant: string; rights: readonly Right[] }>;

export type Person = keyof typeof PEOPLE;

export interface Served {
  readonly store: TaskStore;
  readonly api: TaskApi;
  readonly tokens: Readonly<Record<Person, string>>;
  readonly audited: AuditEvent[];
  /** Everything that was reported as an error. */
  readonly errors: unknown[];
  readonly ask: Ask;
}

/** Who, for example `GET /v1/tasks`, and perhaps a body and headers. */
type Ask = (
  who: Person | undefined,
  line: string,
  ...rest: [body?: unknown, headers?: Record<string, string>]
) => Promise<Answer>;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: AnswerBody;
}

/** The fields that tests read. */
interface AnswerBody {
  readonly status: string;
  readonly task: { readonly id: string };
  readonly tasks: readonly { readonly id: string }[];
  readonly questions: readonly { readonly id: string; readonly callId: string }[];
  readonly next?: string;
  readonly outcome?: { readonly answer: string };
  readonly error: { readonly code: string; readonly message: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** A route in the document. */
interface Operation {
  readonly 'x-whoa-right': string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
}

type Options = Partial<Omit<AccessOptions, 'authenticate'>> & Partial<Omit<TaskApiOptions, 'access'>>;

/** A task API with people who have tokens. `ask('ann', 'GET /v1/tasks')` is a request of one of them. */
export function serve({ store = createMemoryStore(), ...options }: Options = {}): Served {
  const made = Object.entries(PEOPLE).map(([name, person]) => ({ name, ...person, ...createToken() }));
  const tokens = Object.fromEntries(made.map(({ name, token }) => [name, token])) as Record<Person, string>;
  const audited: AuditEvent[] = [];
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const authenticate = createTokenAuthenticator(made.map(({ token: _token, ...entry }) => entry));
  const { agents, login, metrics, isDraining, world, ...rules } = options;
  const access = createAccess({
    authenticate,
    audit: (event) => audited.push(event),
    onError,
    limits: { requestsPerSecond: 1e9, requestsBurst: 1e9 },
    ...rules,
  });
  const api = createTaskApi({
    store,
    access,
    onError,
    ...(agents && { agents }),
    ...(login && { login }),
    ...(metrics && { metrics }),
    ...(isDraining && { isDraining }),
    ...(world && { world }),
  });
  return {
    store,
    api,
    tokens,
    audited,
    errors,
    async ask(who, line, ...[body, headers = {}]) {
      const [method = '', path = ''] = line.split(' ');
      const request = new Request(ORIGIN + path, {
        method,
        headers: {
          ...(who !== undefined && { authorization: `Bearer ${tokens[who]}` }),
          ...(method === 'POST' && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body ?? {}) }),
      });
      const response = await api.fetch(request);
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json');
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: (isJson ? JSON.parse(text) : {}) as AnswerBody,
      };
    },
  };
}

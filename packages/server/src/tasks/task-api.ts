import { OpenAPIHono } from '@hono/zod-openapi';
import { systemWorld, type World } from '@whoa/core/embed';
import { settings, worldRule } from '@whoa/core/internal';
import type { TaskStore } from '@whoa/tasks';
import { RUNNER_RULES } from '@whoa/tasks/internal';
import type { Access } from '../http/access/access.ts';
import type { Login } from '../http/access/login.ts';
import { refuse } from '../http/access/refusal.ts';
import { withCors } from '../http/cors.ts';
import { type ApiEnv, type ApiParts, defineEndpoint, invalid, mount, type Route } from '../http/endpoint.ts';
import { responseTo } from '../http/http-error.ts';
import { CANCEL_ENDPOINTS } from './cancel.ts';
import { COMMAND_ENDPOINTS } from './commands.ts';
import { CONVERSATION_ENDPOINT } from './conversations.ts';
import { EVENTS_ENDPOINT } from './events.ts';
import { healthEndpoints, METRICS_ENDPOINT } from './health.ts';
import { LOGIN_ENDPOINTS } from './login.ts';
import { OPERATE_ENDPOINTS } from './operate.ts';
import { OVERVIEW_ENDPOINTS } from './overview.ts';
import { QUESTION_ENDPOINTS } from './questions.ts';
import { TASK_ENDPOINTS } from './tasks.ts';

/** Options of the task API. */
export interface TaskApiOptions {
  readonly store: TaskStore;
  readonly access: Access;
  /** The agents that callers may request. Without it any name is accepted, and waits for a worker that has it. */
  readonly agents?: readonly string[] | undefined;
  /** Lets pages log in. Its `authenticate` must be one of those of `access`. */
  readonly login?: Login | undefined;
  /** Returns the text of `/metrics`, for example `prometheus.read`. Without it there is no such route. */
  readonly metrics?: (() => string | Promise<string>) | undefined;
  /** Makes `/readyz` report 503, so that load balancers send requests elsewhere before this server closes. */
  readonly isDraining?: (() => boolean) | undefined;
  /** Called with unexpected errors. Clients get no details of them. */
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly world?: World | undefined;
}

const { callback, having, required } = settings;
const API_RULES: settings.Rules<TaskApiOptions> = {
  store: RUNNER_RULES.store,
  access: required(having('access control, as from createAccess', 'authorize')),
  agents: settings.listOf(settings.nonEmptyText),
  login: having('a login, as from createLogin', 'authenticate'),
  metrics: callback,
  isDraining: callback,
  onError: callback,
  world: worldRule,
};

/** Tasks over HTTP. */
export interface TaskApi {
  /** Handles a request. */
  readonly fetch: (request: Request) => Promise<Response>;
  /** All routes, and the right that each needs. */
  readonly routes: readonly Route[];
}

/**
 * Serves a task store over HTTP, as a web-standard handler: for `Bun.serve`, `Deno.serve`, `@hono/node-server`, or your
 * own route.
 *
 * @returns The handler.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { createAccess, createTaskApi, listen } from '@whoa/server';
 *
 * const access = createAccess({ authenticate: () => 'ada' });
 * await using listening = await listen(createTaskApi({ store, access }), { port: 8080 });
 * console.log(listening.url);
 * ```
 */
export function createTaskApi(given: TaskApiOptions): TaskApi {
  const options = settings.readSettings<TaskApiOptions>(given, API_RULES);
  const { store, access, agents, login, metrics, isDraining, onError = () => {}, world = systemWorld } = options;
  const parts: ApiParts = { store, access, world, agents, login, metrics, isDraining, onError };
  const app = new OpenAPIHono<ApiEnv>({
    defaultHook(result) {
      if (!result.success) throw invalid(result.error);
    },
  });
  const endpoints = [
    ...TASK_ENDPOINTS,
    ...CANCEL_ENDPOINTS,
    ...COMMAND_ENDPOINTS,
    ...QUESTION_ENDPOINTS,
    EVENTS_ENDPOINT,
    CONVERSATION_ENDPOINT,
    ...OVERVIEW_ENDPOINTS,
    ...OPERATE_ENDPOINTS,
    ...healthEndpoints(parts),
    ...(metrics === undefined ? [] : [METRICS_ENDPOINT]),
    ...(login === undefined ? [] : LOGIN_ENDPOINTS),
    defineEndpoint({
      method: 'get',
      path: '/openapi.json',
      right: 'public',
      summary: 'This document.',
      responses: { 200: { description: 'OpenAPI 3.1.' } },
      handle: () => Response.json(document),
    }),
  ];
  for (const endpoint of endpoints) mount(app, endpoint, parts);
  app.onError((error) => responseTo(error, onError));
  app.notFound(() =>
    refuse(404, { code: 'unknown-route', message: 'There is no such route; /openapi.json lists them' }),
  );
  const document = createOpenApiDocument(app);

  return {
    routes: endpoints.map(({ method, path, right }) => ({ method, path, right })),
    async fetch(request) {
      const response = await withCors(access, request, () => app.fetch(request));
      response.headers.set('cache-control', 'no-store');
      response.headers.set('x-content-type-options', 'nosniff');
      return response;
    },
  };
}

function createOpenApiDocument(app: OpenAPIHono<ApiEnv>): object {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', { type: 'http', scheme: 'bearer' });
  app.openAPIRegistry.registerComponent('securitySchemes', 'cookie', { type: 'apiKey', in: 'cookie', name: 'whoa' });
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Whoa tasks', version: '1', description: 'Start tasks, follow them, stop them from anywhere.' },
  });
}

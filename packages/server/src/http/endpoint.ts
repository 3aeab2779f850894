import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { World } from '@whoa/core/embed';
import type { TaskStore } from '@whoa/tasks';
import type { Context, MiddlewareHandler } from 'hono';
import { type Access, may, refuseRight } from './access/access.ts';
import type { Login } from './access/login.ts';
import type { Principal, Right } from './access/principal.ts';
import { HttpError } from './http-error.ts';
import { NAME } from './schemas.ts';

/** The dependencies of endpoints. */
export interface ApiParts {
  readonly store: TaskStore;
  readonly access: Access;
  readonly world: World;
  readonly agents: readonly string[] | undefined;
  readonly login: Login | undefined;
  readonly metrics: (() => string | Promise<string>) | undefined;
  readonly isDraining: (() => boolean) | undefined;
  readonly onError: (error: unknown) => void;
}

/** A valid request, from a principal that may send it. */
interface EndpointRequest<Params, Query, Body> {
  readonly principal: Principal;
  /** The tenant that it is about: the principal's, or the one that an operator names. */
  readonly tenant: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly request: Request;
}

/** Where requests go, and the right that they need. */
export interface Route {
  readonly method: 'get' | 'post';
  /** With `{name}` for parameters. */
  readonly path: string;
  /** `public`: no identity is needed. */
  readonly right: Right | 'public';
}

/** A route with its parameters and its handler. The OpenAPI document and the checks come from this. */
export interface Endpoint<Params = unknown, Query = unknown, Body = unknown> extends Route {
  /** A principal with the right `operate` can name another tenant. */
  readonly forOperators?: boolean;
  readonly summary: string;
  readonly params?: z.ZodObject<z.ZodRawShape> & z.ZodType<Params>;
  readonly query?: z.ZodObject<z.ZodRawShape> & z.ZodType<Query>;
  readonly body?: z.ZodType<Body>;
  readonly responses: Readonly<Record<number, { readonly description: string; readonly schema?: z.ZodType }>>;
  handle(asked: EndpointRequest<Params, Query, Body>, parts: ApiParts): Promise<Response> | Response;
}

/** Defines an endpoint whose handler has the types of its schemas. */
export function defineEndpoint<Params, Query, Body>(endpoint: Endpoint<Params, Query, Body>): Endpoint {
  return endpoint as unknown as Endpoint;
}

const ERROR = z
  .object({ error: z.object({ code: z.string(), message: z.string() }).loose() })
  .openapi('Error', { description: 'A code for programs, and a message for people that says what to do.' });

const ANONYMOUS: Principal = { tenant: '', name: 'nobody', rights: [] };
const TENANT = NAME.openapi({ description: "Another tenant; needs the right 'operate'." });

export interface ApiEnv {
  readonly Variables: { principal: Principal };
}

/** Adds an endpoint to an app, behind its guard. */
export function mount(app: OpenAPIHono<ApiEnv>, endpoint: Endpoint, parts: ApiParts): void {
  const { method, path, right, forOperators = false, summary, params, body } = endpoint;
  const query = z.strictObject({ ...endpoint.query?.shape, ...(forOperators && { tenant: TENANT.optional() }) });
  const route = createRoute({
    method,
    path,
    summary,
    'x-whoa-right': right,
    security: right === 'public' ? [] : [{ bearer: [] }, { cookie: [] }],
    middleware: [guard(endpoint, parts.access)],
    request: {
      query,
      ...(params !== undefined && { params }),
      ...(body !== undefined && { body: { required: true, content: { 'application/json': { schema: body } } } }),
    },
    responses: toResponses(endpoint),
  });
  app.openapi(route, (async (context: Context<ApiEnv>) => {
    const { req } = context;
    const valid = (target: string): unknown => (req.valid as (target: string) => unknown)(target);
    const { principal } = context.var;
    const { tenant = principal.tenant, ...rest } = valid('query') as { tenant?: string };
    if (tenant !== principal.tenant && !may(principal, 'operate')) return refuseRight('operate');
    const asked = {
      principal,
      tenant,
      params: params === undefined ? {} : valid('param'),
      query: rest,
      body: body === undefined ? {} : valid('json'),
      request: req.raw,
    };
    return endpoint.handle(asked, parts);
  }) as never);
}

/** Don't read anything of a request before its sender is known. */
function guard({ right, body }: Endpoint, access: Access): MiddlewareHandler<ApiEnv> {
  return async (context, next) => {
    const { raw } = context.req;
    const admitted = right === 'public' ? (access.checkOrigin(raw) ?? ANONYMOUS) : await access.authorize(raw, right);
    if (admitted instanceof Response) return admitted;
    context.set('principal', admitted);
    if (body !== undefined) {
      const read = await access.readBody(raw);
      if (read instanceof Response) return read;
      context.req.raw = read;
    }
    await next();
    return undefined;
  };
}

function toResponses({ responses, right, params, body }: Endpoint) {
  const refused = (description: string) => ({ description, content: { 'application/json': { schema: ERROR } } });
  const own = Object.entries(responses).map(([status, { description, schema }]) => {
    if (schema === undefined) return [status, Number(status) >= 400 ? refused(description) : { description }] as const;
    return [status, { description, content: { 'application/json': { schema } } }] as const;
  });
  return {
    400: refused('The request is invalid; the message explains why.'),
    403: refused('The origin is not allowed, or a right is missing.'),
    421: refused('The host is not allowed.'),
    ...(right !== 'public' && {
      401: refused('The credentials are missing or invalid.'),
      429: refused('Too many requests, streams or tasks; Retry-After says when to try again.'),
      503: refused('The store does not respond; Retry-After says when to try again.'),
    }),
    ...(params !== undefined && { 404: refused('Not found in this tenant.') }),
    ...(body !== undefined && { 413: refused('The body is too large.'), 415: refused('The body is not JSON.') }),
    ...Object.fromEntries(own),
  };
}

/** Converts the errors of a schema to a refusal. */
export function invalid(error: z.ZodError): HttpError {
  const issues = error.issues
    .slice(0, 5)
    .map(({ path, message }) => `${path.map(String).join('.') || 'request'}: ${message}`);
  return new HttpError(400, { code: 'invalid', message: issues.join('; ') });
}

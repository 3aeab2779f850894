import { z } from '@hono/zod-openapi';
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts';
import { HttpError } from '../http/http-error.ts';

const DONE = { 204: { description: 'Done; the response sets or clears the cookie.' } };

/** Only for an API with a login. */
export const LOGIN_ENDPOINTS: readonly Endpoint[] = [
  defineEndpoint({
    method: 'post',
    path: '/v1/login',
    right: 'public',
    summary: 'Exchanges a one-time code, valid for a short time, or a token for a session cookie.',
    body: z.union([
      z.strictObject({ code: z.string().min(1).max(200) }),
      z.strictObject({ token: z.string().min(1).max(1_000) }),
    ]),
    responses: { ...DONE, 401: { description: 'The code is unknown, expired or used, or the token is unknown.' } },
    async handle({ body, request }, parts) {
      const login = parts.login!;
      // Check the origin: another site must not log its visitors in as another user.
      if (!request.headers.has('origin')) throw noOrigin();
      const isCode = 'code' in body;
      const cookie = isCode ? login.exchangeCode(body.code, request) : await login.exchangeToken(body.token, request);
      if (cookie === undefined) throw isCode ? unknownCode() : unknownToken();
      return new Response(null, { status: 204, headers: { 'set-cookie': cookie } });
    },
  }),
  defineEndpoint({
    method: 'post',
    path: '/v1/logout',
    right: 'public',
    summary: 'Ends the session of the cookie.',
    responses: DONE,
    handle: ({ request }, { login }) =>
      new Response(null, { status: 204, headers: { 'set-cookie': login!.logout(request) } }),
  }),
];

function unknownCode(): HttpError {
  const message = 'This code is unknown, expired or used; ask for another';
  return new HttpError(401, { code: 'unknown-code', message });
}

function unknownToken(): HttpError {
  const message = 'This token is unknown; copy it again from the output of the server, or ask its operator';
  return new HttpError(401, { code: 'unknown-token', message });
}

function noOrigin(): HttpError {
  const message = 'Log in from a page of this server, so that the request has an Origin header';
  return new HttpError(403, { code: 'origin-refused', message });
}

import { z } from '@hono/zod-openapi';
import type { Login } from '../access/login.ts';
import { defineEndpoint, type Endpoint } from './http/endpoint.ts';
import { HttpError } from './http/http-error.ts';

const DONE = { 204: { description: 'Done; the cookie says so.' } };

export function loginEndpoints(login: Login): Endpoint[] {
  return [
    defineEndpoint({
      method: 'post',
      path: '/v1/login',
      right: 'public',
      summary: 'Exchanges a code, which works once and not for long, for the cookie of a session.',
      body: z.strictObject({ code: z.string().min(1).max(200) }),
      responses: { ...DONE, 401: { description: 'The code is not known, too old or used.' } },
      handle({ body: { code }, request }) {
        // Check the origin: another site must not log its visitors in as another user.
        if (!request.headers.has('origin')) throw noOrigin();
        const cookie = login.exchange(code, request);
        if (cookie === undefined) {
          const message = 'This code is not known, too old or used; ask for another';
          throw new HttpError(401, { code: 'unknown-code', message });
        }
        return new Response(null, { status: 204, headers: { 'set-cookie': cookie } });
      },
    }),
    defineEndpoint({
      method: 'post',
      path: '/v1/logout',
      right: 'public',
      summary: 'Ends the session of the cookie.',
      responses: DONE,
      handle: ({ request }) => new Response(null, { status: 204, headers: { 'set-cookie': login.logout(request) } }),
    }),
  ];
}

function noOrigin(): HttpError {
  const message = 'A page logs in from its own origin; send its Origin';
  return new HttpError(403, { code: 'origin-refused', message });
}

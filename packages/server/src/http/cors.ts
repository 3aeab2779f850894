import type { Access } from './access/access.ts';

/** Lets pages of listed origins read the responses, and answers their preflights. */
export async function withCors(
  access: Access,
  request: Request,
  respond: () => Response | Promise<Response>,
): Promise<Response> {
  const sharing = Object.entries(access.getCorsHeaders(request));
  const isPreflight = request.method === 'OPTIONS' && sharing.length > 0;
  const preflight = () => access.checkOrigin(request) ?? new Response(null, { status: 204 });
  const response = isPreflight ? preflight() : await respond();
  for (const [name, value] of sharing) response.headers.set(name, value);
  return response;
}

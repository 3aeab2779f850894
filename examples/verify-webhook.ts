// A service that receives webhooks: it verifies the sender before it reads a request.
//   WEBHOOK_SECRET=whsec_your-secret node examples/verify-webhook.ts
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

/** Requests that were signed earlier are rejected: an attacker may be sending one again. */
const TOLERANCE_SECONDS = 300;

/** Returns whether a request was signed with the secret, a short time ago. */
export function isGenuine(headers: Readonly<Record<string, unknown>>, body: string, secret: string): boolean {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (Math.abs(Date.now() / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const expected = createHmac('sha256', key)
    .update(`${String(id)}.${String(timestamp)}.${body}`)
    .digest();
  // One for each secret, while the sender replaces its secret.
  return String(signatures)
    .split(' ')
    .map((signature) => Buffer.from(signature.replace(/^v1,/, ''), 'base64'))
    .some((given) => given.length === expected.length && timingSafeEqual(given, expected));
}

const secret = process.env['WEBHOOK_SECRET'];
if (secret !== undefined) {
  const receive = async (request: IncomingMessage): Promise<number> => {
    const body = await text(request);
    if (!isGenuine(request.headers, body, secret)) return 401;
    // The same webhook may arrive twice, with the same webhook-id.
    console.log(request.headers['webhook-id'], body);
    return 204;
  };
  const server = createServer((request, response) => {
    receive(request).then(
      (status) => response.writeHead(status).end(),
      () => response.destroy(),
    );
  });
  server.listen(8790, '127.0.0.1');
}

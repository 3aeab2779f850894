// The web server: verifies the sender, acknowledges what is stored, and answers later.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { z } from 'zod';
import type { Bot } from './bot.ts';

const MAX_BODY_BYTES = 64 * 1024;
const SEND_MS = 10_000;

const delivery = z.object({
  messageId: z.string().min(1).max(200),
  from: z.string().min(1).max(100),
  to: z.string().min(1).max(100),
  text: z.string().min(1).max(4_000),
  replyTo: z.string().min(1).max(200).optional(),
});

/** What the messenger returns for a message that was sent. */
const receipt = z.object({ messageId: z.string() });

export function createWebhook(bot: Bot, secret: string): Server {
  return createServer((request, response) => {
    receive(request, bot, secret).then(
      (status) => response.writeHead(status).end(),
      // Not stored, so not acknowledged: the messenger delivers it again, and `messageId` prevents a second answer.
      () => response.writeHead(503).end(),
    );
  });
}

async function receive(request: IncomingMessage, bot: Bot, secret: string): Promise<number> {
  if (request.method !== 'POST' || request.url !== '/webhook') return 404;
  const body = await readBody(request);
  if (body === undefined) return 413;
  if (!isSigned(body, secret, request.headers['x-signature'])) return 401;
  const read = delivery.safeParse(parse(body));
  if (!read.success) return 400;
  return (await bot.take(read.data)) ? 200 : 404;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const sign = (body: Buffer, secret: string): string => createHmac('sha256', secret).update(body).digest('hex');

function isSigned(body: Buffer, secret: string, signature: string | string[] | undefined): boolean {
  const [given, expected] = [Buffer.from(String(signature)), Buffer.from(sign(body, secret))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Sends messages through the messenger, which returns its id of each. */
export function createSender(url: string): (to: string, text: string) => Promise<string | undefined> {
  return async (to, text) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ to, text }),
      signal: AbortSignal.timeout(SEND_MS),
    });
    if (!response.ok) throw new Error(`The messenger answered ${response.status}`);
    return receipt.safeParse(await response.json().catch(() => undefined)).data?.messageId;
  };
}

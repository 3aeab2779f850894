// A chat bot behind a webhook, in two instances on one store: a newer message replaces the running answer, in any
// instance. Each delivery is verified, acknowledged as soon as the store has it, and answered later through onReply, as WhatsApp
// and similar services require. Run it: node examples/webhook-bot.ts. It also acts as the sender, and exits by itself.
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, sleep } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createStoreConversations, createTaskStore, type StoreConversations, type TaskStore } from '@whoa/tasks';

const SECRET = 'shared with the sender';
const MAX_BODY_BYTES = 64 * 1024;

/** Stands in for your agent: thinks for a while, then repeats the message. */
const agent = createAgent({
  name: 'assistant',
  planner: {
    async next(history, { token }) {
      await sleep(600, { clock: token.clock, token });
      return reply(`You said: ${String((history.at(-1) as { content: string }).content)}`);
    },
  },
});

interface Delivery {
  readonly messageId: string;
  readonly from: string;
  readonly text: string;
}

/** One instance of the bot: a web server, and the conversations it shares with the other instances. */
async function startInstance(name: string, store: TaskStore, send: (to: string, text: string) => void) {
  const conversations = createStoreConversations({
    agent,
    store,
    worker: name,
    onReply: ({ conversationId, text }) => send(conversationId, text),
  });
  const server = createServer((request, response) => {
    receive(request, conversations).then(
      (status) => response.writeHead(status).end(),
      // Not stored: the sender delivers it again.
      () => response.writeHead(503).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, conversations, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook` };
}

/** Verifies a delivery, and acknowledges it when the message is stored. The reply comes through `onReply`. */
async function receive(request: IncomingMessage, conversations: StoreConversations): Promise<number> {
  const body = await readBody(request);
  if (!isSigned(body, request.headers['x-signature'])) return 401;
  const { messageId, from, text } = JSON.parse(body.toString()) as Delivery;
  return new Promise((resolve, reject) => {
    conversations
      .processMessage(from, text, { messageId, policy: 'replace', onStored: () => resolve(200) })
      .then(({ status }) => console.log(`  ${messageId}: ${status}`))
      .catch((error: unknown) => {
        console.error(error);
        reject(error);
      });
  });
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) throw new RangeError('the delivery is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const sign = (body: Buffer): string => createHmac('sha256', SECRET).update(body).digest('hex');

function isSigned(body: Buffer, signature: string | string[] | undefined): boolean {
  const [given, expected] = [Buffer.from(String(signature)), Buffer.from(sign(body))];
  return given.length === expected.length && timingSafeEqual(given, expected);
}

/** Acts as the sender. */
async function deliver(url: string, delivery: Delivery, signature?: string): Promise<number> {
  const body = Buffer.from(JSON.stringify(delivery));
  const headers = { 'x-signature': signature ?? sign(body) };
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}

const folder = mkdtempSync(join(tmpdir(), 'whoa-webhook-'));
const file = join(folder, 'tasks.db');
const replies: string[] = [];
let answered = (): void => {};
const firstReply = new Promise<void>((resolve) => (answered = resolve));
const send = (to: string, text: string): void => {
  console.log(`  to ${to}: ${text}`);
  replies.push(text);
  answered();
};
const stores = [createTaskStore(`sqlite:${file}`), createTaskStore(`sqlite:${file}`)];
const one = await startInstance('one', stores[0]!, send);
const two = await startInstance('two', stores[1]!, send);

const from = 'ann';
console.log('a forged delivery is refused:', await deliver(one.url, { messageId: 'm0', from, text: 'x' }, 'forged'));
console.log('a message to one, a newer one to two, and the first delivered again:');
await deliver(one.url, { messageId: 'm1', from, text: 'Book a table for two' });
await wait(200);
await deliver(two.url, { messageId: 'm2', from, text: 'No, for three' });
await deliver(two.url, { messageId: 'm1', from, text: 'Book a table for two' });
await firstReply;

const history = await two.conversations.history(from);
for (const { conversations, server } of [one, two]) {
  await conversations[Symbol.asyncDispose]();
  await close(server);
}
for (const store of stores) await store[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });

const said = history.filter(({ role }) => role === 'user').length;
const asExpected = replies.length === 1 && replies[0] === 'You said: No, for three' && said === 2;
console.log(asExpected ? 'one reply was sent, to the newest message' : `not as expected: ${replies.join('; ')}`);
process.exitCode = asExpected ? 0 : 1;

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

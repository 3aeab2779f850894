// Starts one instance. Start as many as you like on one store and one database.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { openai } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { createTaskStore } from '@whoa/tasks';
import { createBot } from './bot.ts';
import { Calendar } from './calendar.ts';
import { Notes } from './notes.ts';
import { createSender, createWebhook } from './webhook.ts';

const { env } = process;
const setting = (name: string, otherwise?: string): string => {
  const value = env[name] ?? otherwise;
  if (value === undefined) throw new Error(`Set ${name}; see README.md`);
  return value;
};

const file = setting('DATABASE', 'bookings.db');
const notes = new Notes(file);
const calendar = new Calendar({
  file,
  latencyMs: Number(setting('CALENDAR_MS', '6000')),
});
const store = createTaskStore(setting('STORE_URL'));
const bot = createBot({
  instance: setting('INSTANCE', `bot-${process.pid}`),
  store,
  // Your provider: OPENAI_API_KEY, and OPENAI_BASE_URL for others with the same protocol.
  model: fromAiSdk(openai.chat(setting('MODEL', 'gpt-5-mini'))),
  calendar,
  notes,
  owners: new Map(Object.entries(JSON.parse(setting('OWNERS', '{}')) as Record<string, string>)),
  send: createSender(setting('SEND_URL')),
});
const server = createWebhook(bot, setting('WEBHOOK_SECRET'));
server.listen(Number(setting('PORT', '3000')), '127.0.0.1');
await once(server, 'listening');
console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/webhook`);

/** A deploy: accept no new deliveries, and hand running work to the other instance. */
async function leave(): Promise<void> {
  server.close();
  await bot[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
  calendar[Symbol.dispose]();
  notes[Symbol.dispose]();
}
process.once('SIGTERM', () => {
  leave().catch(console.error);
});

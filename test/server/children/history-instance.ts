// One instance of a server whose chats are in the application's database. It is killed at the save that its argument counts.
import { createOpenAI } from '@ai-sdk/openai';
import { createChatHandler } from '@whoa/server';
import { streamText } from 'ai';
import { openDatabase } from '../app-database.ts';
import { say } from '../chat-harness.ts';

const [store, provider, file, chat, killAt, isAfter] = process.argv.slice(2);
const database = openDatabase(file);
const die = (): Promise<never> => {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
};
let saves = 0;
const handler = createChatHandler({
  store: store!,
  leaseMs: 1_000,
  authenticate: () => 'ada',
  history: {
    ...database.history,
    async save(change) {
      const isIt = ++saves === Number(killAt);
      if (isIt && isAfter !== 'after') return die();
      const answer = await database.history.save(change);
      return isIt ? die() : answer;
    },
  },
  reply: (turn) => streamText({ model: createOpenAI({ baseURL: provider!, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
});
const response = await handler.fetch(
  new Request('http://app.test/api/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: chat, messages: [say('u1', 'Hi')] }),
  }),
);
await response.text();

// Receives messages of one conversation, one every 40 ms, and reports how each ended. Logs when runs start and end.
import { appendFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, sleep } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createStoreConversations } from '@whoa/tasks';
import { openStore } from '../open-store.ts';

const [file = '', log = '', name = '', count = ''] = process.argv.slice(2);
const note = (what: string): void => appendFileSync(log, `${process.hrtime.bigint()} ${name} ${what}\n`);
const agent = createAgent({
  name: 'assistant',
  planner: {
    async next(_history, { token }) {
      note('begin');
      try {
        await sleep(2_000, { clock: token.clock, token });
        return reply('answered');
      } finally {
        note('end');
      }
    },
  },
});
const store = openStore(file);
const sent: string[] = [];
const conversations = createStoreConversations({ agent, store, onReply: ({ messageId }) => sent.push(messageId) });
process.send?.({ type: 'ready' });
await new Promise((resolve) => process.once('message', resolve));
const replies: Promise<{ status: string }>[] = [];
for (let i = 0; i < Number(count); i++) {
  replies.push(conversations.processMessage('chat', `message ${i}`, { messageId: `${name}-${i}` }));
  await wait(40);
}
const statuses = (await Promise.all(replies)).map(({ status }) => status);
await conversations[Symbol.asyncDispose]();
await store[Symbol.asyncDispose]();
process.send?.({ type: 'done', statuses, sent }, () => process.disconnect());

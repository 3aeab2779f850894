import { createChatHandler } from '@whoa/server';
import { streamText } from 'ai';
import { assistantFor, tools } from '@/lib/assistant';
import { history } from '@/lib/chats';
import { findUser } from '@/lib/login';

export const { GET, POST } = createChatHandler({
  store: process.env['STORE_URL'] ?? 'memory',
  authenticate: findUser,
  history,
  tools,
  mustFinish: { refund: { timeoutMs: 20_000 } }, // the bank was asked
  reply: (turn, { principal }) => streamText(turn.with(assistantFor(principal.name))),
});

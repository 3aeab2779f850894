import { createChatHandler } from '@whoa/server';
import { streamText } from 'ai';
import { assistantFor, tools } from '@/lib/assistant';
import { history } from '@/lib/chats';
import { findUser } from '@/lib/login';

export const { GET, POST } = createChatHandler({
  store: process.env['STORE_URL'],
  authenticate: findUser,
  history,
  tools,
  reply: (turn, { principal }) => streamText({ ...assistantFor(principal.name), ...turn }),
});

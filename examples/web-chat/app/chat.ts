import { openai } from '@ai-sdk/openai';
import { createChatHandler } from '@whoa/server';
import { streamText } from 'ai';
import { history } from './history.ts';
import { findUser } from './login.ts';

export const chat = createChatHandler({
  store: process.env['STORE_URL'] ?? 'memory', // replies in progress; several instances need an address
  authenticate: findUser, // no user is a 401
  history, // leave it out, and the store keeps the chats
  reply: (turn) => streamText({ model: openai.chat('gpt-5-mini'), ...turn }),
});

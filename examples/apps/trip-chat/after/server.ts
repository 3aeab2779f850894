import type { AddressInfo } from 'node:net';
import { createChatHandler, toNodeListener } from '@whoa/server';
import { createUIMessageStream, streamText, toUIMessageStream, validateUIMessages } from 'ai';
import express from 'express';
import { z } from 'zod';
import { assistantFor, createTools, describeData, describeReply } from './assistant.ts';
import { history } from './chats.ts';
import { note } from './db.ts';
import { findUser, logIn } from './login.ts';
import { dataSchemas, metadataSchema, type TripMessage } from './messages.ts';

const app = express();
app.post('/login', express.urlencoded(), (request, response) => {
  response.set('set-cookie', logIn((request.body as { user: string }).user)).redirect('/');
});
app.use(express.static(process.env['PAGE'] ?? 'dist'));

const chat = createChatHandler({
  store: process.env['STORE_URL'] ?? 'memory',
  authenticate: (request) => findUser(request.headers.get('cookie')),
  history,
  tools: createTools(''), // their names and schemas; each reply has its own
  mustFinish: { book: { timeoutMs: 20_000 } },
  convertDataPart: describeData,
  async reply(turn, { principal: { name: user }, body, messages }) {
    await validateUIMessages({
      messages: [...messages],
      tools: createTools(user),
      metadataSchema,
      dataSchemas: { ...dataSchemas, 'stop-report': z.unknown(), 'replaced-calls': z.unknown() },
    });
    return createUIMessageStream<TripMessage>({
      execute({ writer }) {
        writer.write({ type: 'data-notice', data: { text: 'Thinking…' }, transient: true });
        const result = streamText(turn.with(assistantFor(user, { writer, isBrief: body['isBrief'] === true })));
        writer.merge(toUIMessageStream({ stream: result.stream, messageMetadata: describeReply }));
      },
      onEnd({ isAborted }) {
        note(user, isAborted ? 'stopped' : 'replied');
      },
    });
  },
});
app.all(['/api/chat', '/api/chat/*path'], toNodeListener(chat));

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import {
  convertToModelMessages,
  createIdGenerator,
  createUIMessageStream,
  generateId,
  pipeUIMessageStreamToResponse,
  streamText,
  toUIMessageStream,
  UI_MESSAGE_STREAM_HEADERS,
  validateUIMessages,
} from 'ai';
import express from 'express';
import { assistantFor, createTools, describeData, describeReply } from './assistant.ts';
import { readChat, saveChat } from './chats.ts';
import { note } from './db.ts';
import { findUser, logIn } from './login.ts';
import { dataSchemas, metadataSchema, type TripMessage } from './messages.ts';
import { keepStream, resumeStream, stopStream } from './streams.ts';

const app = express();
app.post('/login', express.urlencoded(), (request, response) => {
  response.set('set-cookie', logIn((request.body as { user: string }).user)).redirect('/');
});
app.use(express.static(process.env['PAGE'] ?? 'dist'));
app.use(express.json(), (request, response, next) => {
  response.locals['user'] = findUser(request.headers.cookie);
  if (response.locals['user'] === undefined) response.status(401).end();
  else next();
});

app.get('/api/chat/:id/messages', ({ params: { id } }, response) => {
  response.json(readChat(response.locals['user'] as string, id).messages);
});

app.post('/api/chat', async (request, response) => {
  const user = response.locals['user'] as string;
  const { id, message, isBrief = false } = request.body as { id: string; message: TripMessage; isBrief?: boolean };
  const messages = await validateUIMessages<TripMessage>({
    messages: [...readChat(user, id).messages, message],
    tools: createTools(user),
    metadataSchema,
    dataSchemas,
  });
  saveChat(user, id, { messages, activeStreamId: null });
  const stop = new AbortController();
  const stream = createUIMessageStream<TripMessage>({
    originalMessages: messages,
    generateId: createIdGenerator({ prefix: 'msg', size: 16 }),
    async execute({ writer }) {
      writer.write({ type: 'data-notice', data: { text: 'Thinking…' }, transient: true });
      const result = streamText({
        ...assistantFor(user, { writer, isBrief }),
        messages: await convertToModelMessages(messages, { convertDataPart: describeData }),
        abortSignal: stop.signal,
      });
      writer.merge(toUIMessageStream({ stream: result.stream, messageMetadata: describeReply }));
    },
    onEnd({ messages: all, isAborted }) {
      note(user, isAborted ? 'stopped' : 'replied');
      if (!isAborted) saveChat(user, id, { messages: all, activeStreamId: null });
    },
  });
  pipeUIMessageStreamToResponse({
    response,
    stream,
    consumeSseStream({ stream: sse }) {
      const activeStreamId = generateId();
      keepStream(activeStreamId, sse, stop);
      saveChat(user, id, { activeStreamId });
    },
  });
});

app.get('/api/chat/:id/stream', ({ params: { id } }, response) => {
  const { activeStreamId } = readChat(response.locals['user'] as string, id);
  const stream = activeStreamId === null ? undefined : resumeStream(activeStreamId);
  if (stream === undefined) return void response.status(204).end();
  response.set(UI_MESSAGE_STREAM_HEADERS);
  Readable.fromWeb(stream as Parameters<typeof Readable.fromWeb>[0]).pipe(response);
});

app.post('/api/chat/:id/stop', (request, response) => {
  const { id } = request.params;
  const user = response.locals['user'] as string;
  const { messages, activeStreamId } = readChat(user, id);
  const { assistantMessage } = request.body as { assistantMessage?: TripMessage };
  if (activeStreamId !== null) stopStream(activeStreamId);
  const kept = messages.filter((message) => message.id !== assistantMessage?.id);
  saveChat(user, id, { messages: assistantMessage ? [...kept, assistantMessage] : kept, activeStreamId: null });
  response.json({ success: true });
});

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

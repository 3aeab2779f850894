// A server of one protocol whose turns are streams: node stream-server.ts chat|ag-ui PORT BUG. It keeps the conversations. A turn
// is stopped by POST /ID/stop, or by closing its connection.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { ChatMessage } from './chat-model.ts';
import { type Stream, toAgUi, toChat } from './streams.ts';
import { runTurn } from './turn-loop.ts';

const [protocol, port, bug] = process.argv.slice(2);

interface Conversation {
  readonly history: ChatMessage[];
  stopper: AbortController | undefined;
  /** The turn before, until it has ended. */
  last: Promise<unknown>;
}

const conversations = new Map<string, Conversation>();

function openConversation(id: string): Conversation {
  const conversation = conversations.get(id) ?? { history: [], stopper: undefined, last: Promise.resolve() };
  conversations.set(id, conversation);
  return conversation;
}

interface Prompt {
  readonly id: string;
  readonly runId: string;
  readonly text: string;
}

async function readPrompt(request: IncomingMessage): Promise<Prompt> {
  const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as {
    id?: string;
    threadId?: string;
    runId?: string;
    messages: { content?: string; parts?: { text?: string }[] }[];
  };
  const last = body.messages.at(-1)!;
  const text = last.content ?? last.parts?.map((part) => part.text ?? '').join('') ?? '';
  return { id: body.id ?? body.threadId ?? '', runId: body.runId ?? '', text };
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { id, runId, text } = await readPrompt(request);
  const conversation = openConversation(id);
  const stopper = new AbortController();
  const before = conversation.last;
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  conversation.last = done;
  await before;
  conversation.stopper = stopper;
  response.once('close', () => stopper.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (event: object): unknown => response.write(`data: ${JSON.stringify(event)}\n\n`);
  const stream: Stream = protocol === 'chat' ? toChat(send) : toAgUi(send, { threadId: id, runId });
  const { signal } = bug === 'goes-on' ? new AbortController() : stopper;
  conversation.history.push({ role: 'user', content: text });
  const turn = runTurn(conversation.history, { signal, onText: stream.text, onCall: stream.call });
  // No reader is left for the work that the bug continues.
  turn.catch(() => {});
  const stopped = new Promise((resolve) => stopper.signal.addEventListener('abort', resolve, { once: true }));
  await (bug === 'goes-on' ? Promise.race([turn, stopped]) : turn);
  stream.end(stopper.signal.aborted && bug !== 'says-success');
  conversation.stopper = undefined;
  response.end();
  finish();
}

createServer((request, response) => {
  const [, id] = /^\/([^/]+)\/stop$/.exec(request.url ?? '') ?? [];
  if (id === undefined) {
    answer(request, response).catch((error: Error) => response.destroy(error));
    return;
  }
  conversations.get(id)?.stopper?.abort();
  response.end('{}');
}).listen(Number(port), '127.0.0.1');
process.once('SIGTERM', () => process.exit(0));

import { DefaultChatTransport, type UIMessage, type UIMessageChunk } from 'ai';
import { expect, test } from 'vitest';
import { type HttpOptions, HttpTransport } from './http-transport.ts';
import { readChunks } from './read-chunks.ts';

type Options = HttpOptions<UIMessage>;

const MESSAGE: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hej på deg 🙂' }] };
const SEND = {
  trigger: 'submit-message',
  chatId: 'a/b c',
  messageId: 'u1',
  messages: [MESSAGE],
  abortSignal: undefined,
  headers: { 'X-One': '1' },
  body: { model: 'small' },
  metadata: { from: 'page' },
} as const;

const OPTIONS: readonly (readonly [string, Options])[] = [
  ['defaults', {}],
  ['a path with a query', { api: 'https://app.test/chat/?v=1' }],
  [
    'headers, a body and credentials',
    { headers: { 'x-one': '0', 'x-two': '2' }, body: { a: 1 }, credentials: 'include' },
  ],
  [
    'functions',
    {
      headers: () => Promise.resolve(new Headers({ authorization: 'Bearer 1' })),
      body: () => ({ a: 2, id: 'not this' }),
      credentials: () => 'omit' as const,
    },
  ],
  [
    'prepared requests',
    {
      prepareSendMessagesRequest: (given) => ({ body: { given }, headers: { 'x-own': '1' }, api: '/own' }),
      prepareReconnectToStreamRequest: (given) => ({ api: `/own?${JSON.stringify(given)}`, credentials: 'omit' }),
    },
  ],
];

async function collect(stream: AsyncIterable<UIMessageChunk>): Promise<UIMessageChunk[]> {
  const all: UIMessageChunk[] = [];
  for await (const chunk of stream) all.push(chunk);
  return all;
}

/** Returns the requests of a transport that sends and resumes. */
async function record(create: (fetch: typeof globalThis.fetch) => HttpTransport<UIMessage>): Promise<unknown> {
  const requests: unknown[] = [];
  const transport = create((url, { signal: _, body, ...init } = {}) => {
    const credentials = init.credentials ?? undefined;
    const sent = typeof body === 'string' ? (JSON.parse(body) as unknown) : undefined;
    requests.push({ url, method: init.method, headers: init.headers, credentials, sent });
    return Promise.resolve(new Response('data: {"type":"finish"}\r\n\r\ndata: [DONE]\n\n'));
  });
  const sent = await transport.sendMessages({ ...SEND, messages: [MESSAGE] });
  const resumed = await transport.reconnectToStream({ chatId: SEND.chatId, metadata: 1, headers: { 'x-last': 'a' } });
  return { requests, sent: await collect(sent), resumed: await collect(resumed!) };
}

test.each(OPTIONS)("requests and streams equal those of the SDK's transport: %s", async (_, options) => {
  const theirs = await record(
    (fetch) => new DefaultChatTransport<UIMessage>({ ...options, fetch }) as unknown as HttpTransport<UIMessage>,
  );
  expect(await record((fetch) => new HttpTransport<UIMessage>(options, fetch))).toEqual(theirs);
});

test('an error response is thrown with its status and text, and a 204 is no stream', async () => {
  const refusing = new HttpTransport<UIMessage>({}, () => Promise.resolve(new Response('Not yours', { status: 403 })));
  await expect(refusing.sendMessages({ ...SEND, messages: [MESSAGE] })).rejects.toMatchObject({
    statusCode: 403,
    message: 'Not yours',
  });
  const quiet = new HttpTransport<UIMessage>({}, () => Promise.resolve(new Response(null, { status: 204 })));
  expect(await quiet.reconnectToStream({ chatId: 'c' })).toBeNull();
});

const CHUNKS: readonly UIMessageChunk[] = [
  { type: 'start', messageId: 'm' },
  { type: 'text-delta', id: 't', delta: 'Blåbær 🙂\r\n\n\ndata: no' },
  { type: 'finish' },
];

test.each(['\n', '\r\n'])('a stream that is cut at any byte has the same chunks (line ends %j)', async (end) => {
  const lines = CHUNKS.flatMap((chunk) => [': ping', '', 'event: message', `data: ${JSON.stringify(chunk)}`, '']);
  const bytes = new TextEncoder().encode([...lines, 'data: [DONE]', '', ''].join(end));
  for (let cut = 0; cut <= bytes.length; cut++) {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(bytes.slice(0, cut));
        controller.enqueue(bytes.slice(cut));
        controller.close();
      },
    });
    expect(await collect(readChunks(new Response(body)))).toEqual(CHUNKS);
  }
});

test('a chunk that is not JSON fails the reading, as a network error does', async () => {
  await expect(collect(readChunks(new Response('data: {"type"\n\n')))).rejects.toThrow(SyntaxError);
  const failing = new ReadableStream({ pull: (controller) => controller.error(new TypeError('network error')) });
  await expect(collect(readChunks(new Response(failing)))).rejects.toThrow(TypeError);
});

import { createOpenAI } from '@ai-sdk/openai';
import { type Answer, type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createChatHandler, type Listening, listen, serveWebSockets } from '@whoa/server';
import { isFinalStatus, type TaskHead, type TaskStore } from '@whoa/tasks';
import { streamText } from 'ai';
import type { Browser, BrowserContext } from 'playwright-core';
import { until } from '../promises/fixture.ts';
import { bundlePage, type ChatPage, launchBrowser, openPage } from './chat-page.ts';
import { fileFor } from './files.ts';

/** What the model says: it stops after `PAUSE_AFTER` words until it is let go. */
const WORDS = Array.from({ length: 10 }, (_, index) => `w${index} `);
const PAUSE_AFTER = 5;
export const ALL = WORDS.join('');
export const HALF = WORDS.slice(0, PAUSE_AFTER).join('');

/** Everything the scenarios share: a browser, the bundled page, a model. */
export interface Lab extends AsyncDisposable {
  readonly browser: Browser;
  readonly provider: LoopbackProvider;
  /** Opens a chat of its own on a store: two servers, one page. */
  open(store: TaskStore, options?: ChatSiteOptions): Promise<ChatSite>;
}

interface ChatSiteOptions {
  readonly strict?: boolean;
  readonly naive?: boolean;
  readonly socket?: boolean;
}

/** One chat in a browser of its own. */
export interface ChatSite extends AsyncDisposable {
  readonly id: string;
  readonly context: BrowserContext;
  readonly servers: readonly Listening[];
  readonly requests: readonly string[];
  /** How often a stop came in. */
  stops(): number;
  /** Opens the page, on the first server or another. */
  page(server?: number): Promise<ChatPage>;
  /** Lets the model go on. */
  release(): void;
  /** Holds back answers to requests of this kind until what it returns is called. */
  hold(kind: 'send' | 'stop'): () => void;
  /** Cuts all connections. */
  cut(): void;
  tasks(): Promise<readonly TaskHead[]>;
  /** The statuses of all runs, the oldest first, once all have ended. */
  ends(): Promise<readonly string[]>;
}

let sites = 0;

export async function openLab(): Promise<Lab> {
  const gates = new Map<string, PromiseWithResolvers<void>>();
  const gateOf = (id: string): PromiseWithResolvers<void> => {
    const gate = gates.get(id) ?? Promise.withResolvers<void>();
    gates.set(id, gate);
    return gate;
  };
  const provider = await startLoopbackProvider({ script: ({ body }) => answerTo(JSON.stringify(body), gateOf) });
  const script = await bundlePage();
  const browser = await launchBrowser();
  return {
    browser,
    provider,
    open: (store, options) => createHostDirectory({ store, browser, script, url: provider.url, gateOf, ...options }),
    async [Symbol.asyncDispose]() {
      await browser.close();
      await provider.close();
    },
  };
}

/** A message names its chat, and says whether the model is to pause. */
function answerTo(body: string, gateOf: (id: string) => PromiseWithResolvers<void>): Answer {
  const [, kind = 'all', id = ''] = [...body.matchAll(/say (all|half) (room-\d+)/g)].at(-1) ?? [];
  if (kind === 'all') return { parts: [{ text: WORDS }] };
  return {
    parts: [{ text: [...WORDS.slice(0, PAUSE_AFTER), { stall: gateOf(id).promise }, ...WORDS.slice(PAUSE_AFTER)] }],
  };
}

interface ChatSiteParts extends ChatSiteOptions {
  readonly store: TaskStore;
  readonly browser: Browser;
  readonly script: string;
  readonly url: string;
  readonly gateOf: (id: string) => PromiseWithResolvers<void>;
}

async function createHostDirectory({
  store,
  browser,
  script,
  url,
  gateOf,
  ...options
}: ChatSiteParts): Promise<ChatSite> {
  const id = `room-${++sites}`;
  const requests: string[] = [];
  const holds = new Map<string, PromiseWithResolvers<void>>();
  const handlers = [0, 1].map(() =>
    createChatHandler({
      store,
      authenticate: () => 'ada',
      audit: ({ type }) => type === 'cancel' && requests.push('stop'),
      reply: (turn) => streamText({ model: createOpenAI({ baseURL: url, apiKey: 'none' }).chat('gpt-4o'), ...turn }),
    }),
  );
  const servers = await Promise.all(
    handlers.map((handler) =>
      listen({
        async fetch(request) {
          const { pathname } = new URL(request.url);
          if (!pathname.startsWith('/api/')) return fileFor(pathname, script);
          const kind = pathname.endsWith('/stop') ? 'stop' : request.method === 'POST' ? 'send' : 'read';
          if (kind === 'send') requests.push(kind);
          const response = await handler.fetch(request);
          await holds.get(kind)?.promise;
          return response;
        },
      }),
    ),
  );
  for (const [i, { server }] of servers.entries()) serveWebSockets(server, handlers[i]!);
  const context = await browser.newContext();
  const asked = Object.entries(options).filter(([, isAsked]) => isAsked === true);
  const query = [`id=${id}`, ...asked.map(([name]) => name)].join('&');
  const tasks = async () =>
    (await store.list({ tenant: 'ada', conversation: id })).tasks.filter(({ agent }) => agent === 'whoa-chat-reply');
  return {
    id,
    context,
    servers,
    requests,
    stops: () => requests.filter((kind) => kind === 'stop').length,
    page: async (server = 0) => openPage(await context.newPage(), `${servers[server]!.url}/?${query}`),
    release: () => gateOf(id).resolve(),
    hold(kind) {
      const held = Promise.withResolvers<void>();
      holds.set(kind, held);
      return () => {
        holds.delete(kind);
        held.resolve();
      };
    },
    cut() {
      for (const { server } of servers) server.closeAllConnections();
    },
    tasks,
    async ends() {
      await until(async () => (await tasks()).every(({ status }) => isFinalStatus(status)));
      return (await tasks()).map(({ status }) => status).toReversed();
    },
    async [Symbol.asyncDispose]() {
      await context.close();
      gateOf(id).resolve();
      for (const held of holds.values()) held.resolve();
      for (const server of servers) await server[Symbol.asyncDispose]();
      for (const handler of handlers) await handler[Symbol.asyncDispose]();
    },
  };
}

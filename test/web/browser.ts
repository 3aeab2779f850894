/* oxlint-disable typescript/no-deprecated -- what applications have */
import { createOpenAI } from '@ai-sdk/openai';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { type ChatHandler, createChatHandler, type ListeningServer, listen } from '@whoa/server';
import { createMemoryStore, isFinalStatus, type TaskSummary } from '@whoa/tasks';
import { streamText, tool } from 'ai';
import type { Page } from 'playwright-core';
import { z } from 'zod';
import { until } from '../promises/fixture.ts';
import { bundlePage, type ChatPage, launchBrowser, openContext, openPage } from './chat-page.ts';
import { fileFor } from './files.ts';

/** The model's reply: it pauses after `PAUSE_AFTER` words until it is released. */
const WORDS = Array.from({ length: 10 }, (_, index) => `w${index} `);
const PAUSE_AFTER = 5;
export const ALL = WORDS.join('');
export const HALF = WORDS.slice(0, PAUSE_AFTER).join('');

/** The gates of the tools, by the name of a chat. */
const gates = new Map<string, Promise<unknown>>();

const charge = {
  inputSchema: z.object({ room: z.string() }),
  execute: async ({ room }: { room: string }) => {
    await gates.get(room);
    return 'charged';
  },
};

/** Two need approval first, one runs in the page, two must finish and wait until they are released. */
const tools = {
  charge: tool(charge),
  confirm: tool({ ...charge, needsApproval: true }),
  pay: tool({ inputSchema: z.object({}), needsApproval: true, execute: () => 'paid' }),
  locate: tool({ inputSchema: z.object({}), outputSchema: z.string() }),
};

/** Everything the scenarios share: a browser, the bundled page, a model, and two servers on one store. */
export interface Lab extends AsyncDisposable {
  /** Opens a separate chat. */
  open(options?: ChatSiteOptions): ChatSite;
}

interface ChatSiteOptions {
  readonly strict?: boolean;
  readonly naive?: boolean;
  /** Its pages have a name of an intranet, over plain HTTP. */
  readonly isInsecure?: boolean;
}

/** One chat in its own tabs. */
export interface ChatSite extends AsyncDisposable {
  readonly id: string;
  readonly servers: readonly ListeningServer[];
  readonly requests: readonly string[];
  /** How many stop requests arrived. */
  stops(): number;
  /** Opens the page, on the first server or another. */
  page(server?: number): Promise<ChatPage>;
  /** Opens the page in another browser. */
  elsewhere(): Promise<ChatPage>;
  /** Releases the model. */
  release(): void;
  /** Delays responses to requests of this kind until the returned function is called. */
  hold(kind: 'send' | 'stop'): () => void;
  /** Cuts all connections. */
  cut(): void;
  tasks(): Promise<readonly TaskSummary[]>;
  /** The statuses of all runs, the oldest first, once all have ended. */
  ends(): Promise<readonly string[]>;
}

/** The servers' and the model's state of a chat. */
interface SiteState {
  readonly requests: string[];
  readonly holds: Map<string, PromiseWithResolvers<void>>;
  /** The model pauses until it is open. */
  readonly gate: PromiseWithResolvers<void>;
}

export async function openLab(): Promise<Lab> {
  const sites = new Map<string, SiteState>();
  const provider = await startLoopbackProvider({ script: ({ body }) => answerTo(JSON.stringify(body), sites) });
  const [browser, script] = await Promise.all([launchBrowser(), bundlePage()]);
  const context = await openContext(browser);
  const store = createMemoryStore();
  const model = createOpenAI({ baseURL: provider.url, apiKey: 'none' }).chat('gpt-4o');
  const handlers = [0, 1].map(() =>
    createChatHandler({
      store,
      authenticate: () => 'ada',
      tools,
      mustFinish: { charge: { timeoutMs: 60_000 }, confirm: { timeoutMs: 60_000 } },
      reply: (turn) => streamText({ model, ...turn }),
    }),
  );
  const servers = await Promise.all(
    handlers.map((handler) => listen({ fetch: (request) => serve(request, { handler, script, sites }) })),
  );
  return {
    open({ isInsecure = false, ...options } = {}) {
      const id = `room-${sites.size + 1}`;
      const site: SiteState = { requests: [], holds: new Map(), gate: Promise.withResolvers() };
      const { requests, holds, gate } = site;
      gates.set(id, gate.promise);
      sites.set(id, site);
      const pages: Page[] = [];
      const asked = Object.entries(options).filter(([, isAsked]) => isAsked === true);
      const query = [`id=${id}`, ...asked.map(([name]) => name)].join('&');
      const tasks = async () => (await store.list({ tenant: 'ada', conversation: id })).tasks;
      return {
        id,
        servers,
        requests,
        stops: () => requests.filter((kind) => kind === 'stop').length,
        async page(server = 0) {
          const page = await context.newPage();
          pages.push(page);
          const { url } = servers[server]!;
          return openPage(page, `${isInsecure ? url.replace('127.0.0.1', 'intranet.test') : url}/?${query}`);
        },
        async elsewhere() {
          const page = await browser.newPage();
          pages.push(page);
          return openPage(page, `${servers[1]!.url}/?${query}`);
        },
        release: gate.resolve,
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
          for (const page of pages) await page.close();
          gate.resolve();
          for (const held of holds.values()) held.resolve();
        },
      };
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      for (const part of [...servers, ...handlers, store]) await part[Symbol.asyncDispose]();
      await provider.close();
    },
  };
}

interface Served {
  readonly handler: ChatHandler;
  readonly script: string;
  readonly sites: ReadonlyMap<string, SiteState>;
}

/** Serves the page and its chat, and records the requests of its site. */
async function serve(request: Request, { handler, script, sites }: Served): Promise<Response> {
  const { pathname } = new URL(request.url);
  if (!pathname.startsWith('/api/')) return fileFor(pathname, script);
  if (request.method !== 'POST') return handler.fetch(request);
  const site = sites.get(new URL(request.headers.get('referer')!).searchParams.get('id')!)!;
  const kind = pathname.endsWith('/stop') ? 'stop' : 'send';
  site.requests.push(kind);
  const response = await handler.fetch(request);
  await site.holds.get(kind)?.promise;
  return response;
}

/** A message names its chat, and whether the model should pause. */
function answerTo(body: string, sites: ReadonlyMap<string, SiteState>): ScriptedResponse {
  const [, call, , room] = /ask for (pay|locate|charge|confirm)( (room-\d+))?(?!.*"role":"tool")/.exec(body) ?? [];
  if (call !== undefined) return { parts: [{ call, id: `${call}-1`, input: { room } }] };
  const [, kind = 'all', id = ''] = [...body.matchAll(/say (all|half) (room-\d+)/g)].at(-1) ?? [];
  if (kind === 'all') return { parts: [{ text: WORDS }] };
  const stall = sites.get(id)!.gate.promise;
  return { parts: [{ text: [...WORDS.slice(0, PAUSE_AFTER), { stall }, ...WORDS.slice(PAUSE_AFTER)] }] };
}

// A real Postgres, a server, workers and a browser, for tests and pictures of the console.
import { join } from 'node:path';
import { createToken } from '@whoa/server';
import { createTaskClient, type TaskClient } from '@whoa/server/task-client';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { borrowPostgres } from '../servers/borrow.ts';
import { type Child, startProgram } from '../tasks/child.ts';
import { launchBrowser } from '../web/chat-page.ts';
import { buildConsole } from './build-console.ts';

export interface ConsoleRig extends AsyncDisposable {
  readonly browser: Browser;
  readonly url: string;
  readonly token: string;
  readonly client: TaskClient;
  readonly location: string;
  /** Opens a page of the console, logged in. Errors and policy violations of the page are kept in `problems`. */
  open(path: string, options?: OpenOptions): Promise<Page>;
  /** Closes every page: one that stays open would continue to draw its task. */
  closePages(): Promise<void>;
  readonly problems: readonly string[];
  /** Kills the server and starts another at the same port. */
  restartServer(whileAway?: () => Promise<void>): Promise<void>;
  start(agent: string, input: string, more?: object): Promise<string>;
}

interface OpenOptions {
  readonly theme?: 'light' | 'dark';
  readonly width?: number;
  readonly height?: number;
}

/** Starts everything. */
export async function startConsole({ workers = 1 } = {}): Promise<ConsoleRig> {
  buildConsole();
  const stack = new AsyncDisposableStack();
  const postgres = stack.use(await borrowPostgres());
  const location = JSON.stringify({ backend: 'postgres', url: postgres.url });
  const { token, sha256 } = createToken();
  const server = { child: program('console-server', [location, '0', sha256]), port: '' };
  server.port = `${(await server.child.hear<Listening>(({ type }) => type === 'listening')).port}`;
  stack.defer(() => end(server.child));
  for (let worker = 0; worker < workers; worker++) {
    const child = program('console-worker', [location]);
    await child.hear<Listening>(({ type }) => type === 'serving');
    stack.defer(() => end(child));
  }
  const browser = await launchBrowser();
  stack.defer(() => browser.close());
  const url = `http://127.0.0.1:${server.port}`;
  const client = createTaskClient({ url, token });
  const problems: string[] = [];

  return {
    browser,
    url,
    token,
    client,
    location,
    problems,
    // Each in a context of its own: pages of one context waited for each other on a busy machine.
    open: async (path, options) => openPage(await browser.newContext(), { url, token, path, problems }, options),
    async closePages() {
      for (const context of browser.contexts()) await context.close();
    },
    async restartServer(whileAway) {
      await end(server.child, 'SIGKILL');
      await whileAway?.();
      server.child = program('console-server', [location, server.port, sha256]);
      await server.child.hear<Listening>(({ type }) => type === 'listening');
    },
    async start(agent, input, more = {}) {
      const receipt = await client.create({ agent, input, ...more });
      if (!('task' in receipt)) throw new Error(`not created: ${receipt.result}`);
      return receipt.task.id;
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

interface PageRequest {
  readonly url: string;
  readonly token: string;
  readonly path: string;
  readonly problems: string[];
}

/** Opens a page of a console, logged in. The pages of a context share a process and what it compiled. */
export async function openPage(
  context: BrowserContext,
  { url, token, path, problems }: PageRequest,
  { theme = 'light', width = 1280, height = 900 }: OpenOptions = {},
): Promise<Page> {
  const page = await context.newPage();
  await page.setViewportSize({ width, height });
  await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
  page.on('pageerror', (error) => problems.push(`${error.message}`));
  page.on('console', (message) => {
    // The browser itself reports requests that failed, which tests cause.
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) problems.push(message.text());
  });
  page.on('dialog', (dialog) => {
    problems.push(`dialog: ${dialog.message()}`);
    dialog.dismiss().catch(() => {});
  });
  await context.request.post(`${url}/v1/login`, { data: { token }, headers: { origin: url } });
  await page.goto(`${url}/console/${path}`);
  return page;
}

/** Closes all pages but the first one, which keeps the process. */
export async function closePages(context: BrowserContext): Promise<void> {
  for (const page of context.pages().slice(1)) await page.close();
}

interface Listening {
  readonly type: string;
  readonly port?: number;
}

function program(name: string, args: readonly string[]): Child {
  return startProgram(join(import.meta.dirname, `programs/${name}.ts`), args);
}

async function end(child: Child, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  child.process.kill(signal);
  await child.ended;
}

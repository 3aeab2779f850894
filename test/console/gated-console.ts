// A console in this process over a store in memory, and an agent that waits for the test at every step.
import { type Content, createAgent, defineTool, toText } from '@whoa/core';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import {
  combineAuthenticators,
  createAccess,
  createConsoleHandler,
  createLogin,
  createTaskApi,
  createToken,
  createTokenAuthenticator,
  listen,
  USER_RIGHTS,
} from '@whoa/server';
import { createTaskClient, type TaskClient } from '@whoa/server/task-client';
import { createMemoryStore, createRunner } from '@whoa/tasks';
import type { Page } from 'playwright-core';
import { z } from 'zod';
import { launchBrowser, openContext } from '../web/chat-page.ts';
import { buildConsole } from './build-console.ts';
import { closePages, openPage } from './console.ts';

/** Where something waits until a test lets it continue. */
class Gate<Value> {
  #waiting: ((value: Value) => void)[] = [];
  #arrivals: (() => void)[] = [];

  wait(signal: AbortSignal): Promise<Value> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(resolve);
      signal.addEventListener('abort', () => {
        this.#waiting = this.#waiting.filter((one) => one !== resolve);
        reject(signal.reason as Error);
      });
      for (const arrived of this.#arrivals.splice(0)) arrived();
    });
  }

  /** Lets the first one continue, as soon as there is one. */
  async open(value: Value): Promise<void> {
    await this.arrival();
    this.#waiting.shift()!(value);
  }

  /** Resolves when one waits. */
  async arrival(): Promise<void> {
    if (this.#waiting.length === 0) await new Promise<void>((resolve) => this.#arrivals.push(resolve));
  }
}

/** Where the agent of one conversation waits: before each reply, and in each call. */
class Gates {
  readonly replies: Gate<'call' | 'end'> = new Gate();
  readonly calls: Gate<'print' | 'end'> = new Gate();
}

export interface GatedConsole extends AsyncDisposable {
  readonly client: TaskClient;
  readonly problems: readonly string[];
  /** The gates of the conversation whose first message is `Begin NAME`. */
  gates(name: string): Gates;
  open(path: string, size?: { readonly width: number; readonly height: number }): Promise<Page>;
  /** Closes every page: one that stays open would continue to draw its task. */
  closePages(): Promise<void>;
}

const PRINTED = 30;

export async function startGatedConsole(): Promise<GatedConsole> {
  buildConsole();
  const stack = new AsyncDisposableStack();
  const all = new Map<string, Gates>();
  const gates = (name: string): Gates => all.get(name) ?? all.set(name, new Gates()).get(name)!;
  const work = defineTool({
    name: 'work',
    description: 'Prints lines and ends, as the test says.',
    inputSchema: z.object({ name: z.string() }),
    async execute({ name }, { signal, update }) {
      const lines: string[] = [];
      while ((await gates(name).calls.wait(signal)) === 'print') {
        for (let line = 0; line < PRINTED; line++) lines.push(`line ${lines.length + 1}`);
        update({ content: lines.join('\n') });
      }
      return { content: 'worked' };
    },
  });
  const model = createScriptedModel([]);
  const gated = {
    ...model,
    async *stream(...[request, options]: Parameters<typeof model.stream>) {
      const [first, ...others] = request.messages
        .filter(({ role }) => role === 'user')
        .map(({ content }) => toText(content as Content));
      const name = first!.slice('Begin '.length);
      const next = await gates(name).replies.wait(options.signal);
      const end: ScriptedStep = next === 'call' ? { call: 'work', id: crypto.randomUUID(), input: { name } } : 'done.';
      yield* createScriptedModel([[`To “${others.at(-1) ?? first}”: `, end]]).stream(request, options);
    },
  };
  const store = stack.use(createMemoryStore());
  const agent = createAgent({ name: 'worker', model: gated, tools: [work] });
  await stack.use(createRunner({ store, agents: { worker: agent } })).serve();
  const { token, sha256 } = createToken();
  const tokens = createTokenAuthenticator([{ sha256, tenant: 'acme', name: 'ann', rights: USER_RIGHTS }]);
  const login = createLogin({ tokens });
  const limits = { maxStreams: 1_000, requestsPerSecond: 1_000, requestsBurst: 1_000 };
  const access = createAccess({ authenticate: combineAuthenticators(tokens, login.authenticate), limits });
  const api = createTaskApi({ store, access, login, agents: ['worker'] });
  const page = createConsoleHandler();
  const fetch = (request: Request): Promise<Response> =>
    (new URL(request.url).pathname.startsWith(page.path) ? page : api).fetch(request);
  const listening = stack.use(await listen({ fetch }, { port: 0 }));
  const browser = await launchBrowser();
  stack.defer(() => browser.close());
  const context = await openContext(browser);
  const url = `http://127.0.0.1:${listening.port}`;
  const problems: string[] = [];
  return {
    client: createTaskClient({ url, token }),
    problems,
    gates,
    open: (path, size) => openPage(context, { url, token, path, problems }, size),
    closePages: () => closePages(context),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

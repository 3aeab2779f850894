// Two instances of an application in separate processes, on one store, behind balancers, and people in a real browser.

import { deepStrictEqual } from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { UIMessage } from 'ai';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { until } from '../../promises/fixture.ts';
import { type Child, startProgram } from '../../tasks/child.ts';
import { bundlePage, type ChatPage, launchBrowser, openContext, openPage } from '../chat-page.ts';
import type { ChatWindow } from '../page.ts';
import { type Front, openFront } from './front.ts';
import { openScript, type Script, type SiteState } from './script.ts';

export type Kind = 'reply' | 'agent';

export interface WebHarnessOptions {
  readonly kind: Kind;
  /** The address of the store. */
  readonly store: string;
  /** Where the packages are installed, with a copy of `test/web`. Without it our sources are used. */
  readonly folder?: string | undefined;
  /** The file of the application's own database, if that keeps the chats. */
  readonly history?: string | undefined;
  /** Of the page's bundle. */
  readonly mode?: 'development' | 'production';
  /** One instance: a store in memory is not shared. */
  readonly isAlone?: boolean;
}

/** A separate chat. */
export interface Site extends AsyncDisposable, Pick<SiteState, 'effects'> {
  readonly id: string;
  /** The model's last request, as text. */
  told(): string;
  /** The process that replies. */
  maker(): number | undefined;
  /** Opens a tab of one browser. While instances end and start, loading it may take more tries. */
  page(tries?: number): Promise<ChatPage>;
  /** Opens a page of another browser, which prefers the other instance. */
  elsewhere(context?: BrowserContext, tries?: number): Promise<ChatPage>;
  /** Releases the model and the tools. */
  release(): void;
  /** Cuts the connections of the first browser, until it is called with `false`. */
  cut(isCut: boolean): void;
  /** Loses all packets of the first browser, until it is called with `false`. */
  silence(isSilent: boolean): void;
  messages(): Promise<readonly UIMessage[]>;
  /** Another user logs in, in all tabs of the first browser. */
  logIn(user: string): Promise<void>;
  /** Resolves when these pages, or all, show what the server has, and nothing is pending. */
  agree(...pages: readonly Page[]): Promise<void>;
}

export interface WebHarness extends AsyncDisposable {
  readonly kind: Kind;
  readonly browser: Browser;
  /** Opens a chat, in a browser that all chats share or another. */
  open(context?: BrowserContext): Promise<Site>;
  /** Ends an instance, by its number or the chat that it replies to. Others take over in the meantime. */
  end(which: number | Site, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  /** Starts the instances that have ended again. */
  heal(): Promise<void>;
  refusals(): readonly string[];
}

/** Short, so that a lost instance is replaced soon. */
const LEASE_MS = 3_000;
const PAGE_TIMEOUT_MS = 90_000;
const INSTANCES = [0, 1];
/** How long a page may take to show what the server has, on a busy machine. */
const AGREE_MS = 30_000;
/** A server limits the requests of each user. */
const READ_AGAIN_MS = 500;

interface Instance {
  readonly child: Child;
  readonly port: number;
}

export async function openHarness(options: WebHarnessOptions): Promise<WebHarness> {
  const { folder = join(import.meta.dirname, '../..'), kind, store } = options;
  const temporary = mkdtempSync(join(tmpdir(), 'whoa-harness-'));
  const file = join(temporary, 'page.js');
  const isInstalled = options.folder !== undefined;
  writeFileSync(file, await bundlePage({ page: join(folder, 'web/page.ts'), mode: options.mode, isInstalled }));
  const script = await openScript();
  const args = [store, script.modelUrl, script.controlUrl, file, kind, `${LEASE_MS}`, options.history ?? ''];
  const start = async (): Promise<Instance> => {
    const child = startProgram(join(folder, 'web/scenarios/server.ts'), args, { isInstalled });
    return { child, port: (await child.hear<{ type: string; port: number }>(({ type }) => type === 'listening')).port };
  };
  const instances = await Promise.all((options.isAlone ? [0] : INSTANCES).map(start));
  const browser = await launchBrowser({ isIsolated: true });
  const context = await openContext(browser);
  const alive = ({ child }: Instance): boolean => child.process.exitCode === null && child.process.signalCode === null;
  const ports = (first: number) => (): number[] =>
    [instances[first] ?? instances[0]!, ...instances].filter(alive).map(({ port }) => port);
  let sites = 0;
  const prefix = `site-${kind}-${process.pid.toString(36)}`;
  return {
    kind,
    browser,
    async open(own = context) {
      const fronts = await Promise.all(INSTANCES.map((first) => openFront(ports(first))));
      return openSite(`${prefix}-${++sites}`, { fronts, browser, context: own, script });
    },
    async end(which, signal) {
      const index =
        typeof which === 'number' ? which : instances.findIndex(({ child }) => child.process.pid === which.maker());
      const { child } = instances[index]!;
      child.process.kill(signal);
      await child.ended;
    },
    async heal() {
      for (const [index, instance] of instances.entries()) if (!alive(instance)) instances[index] = await start();
    },
    refusals: () => script.refusals(),
    async [Symbol.asyncDispose]() {
      await browser.close();
      await script[Symbol.asyncDispose]();
      for (const { child } of instances) child.process.kill('SIGTERM');
      const isOver = Promise.all(instances.map(({ child }) => child.ended)).then(() => true);
      const killAll = setTimeout(() => {
        for (const { child } of instances) child.process.kill('SIGKILL');
      }, PAGE_TIMEOUT_MS);
      await isOver;
      clearTimeout(killAll);
      rmSync(temporary, { recursive: true });
    },
  };
}

interface SiteParts {
  readonly fronts: readonly Front[];
  readonly browser: Browser;
  readonly context: BrowserContext;
  readonly script: Script;
}

function openSite(id: string, { fronts, browser, context, script }: SiteParts): Site {
  const state = script.site(id);
  const pages: Page[] = [];
  const open = async (page: Page, front: Front, tries?: number): Promise<ChatPage> => {
    pages.push(page);
    page.setDefaultTimeout(PAGE_TIMEOUT_MS);
    return openPage(page, `${front.url}/?id=${id}`, tries);
  };
  /** A busy server may reject once, or is being started; the caller retries. */
  const tryRead = async (): Promise<UIMessage[] | undefined> => {
    const response = await fetch(`${fronts[1]!.url}/api/chat/${id}/messages`).catch(() => undefined);
    return response?.ok ? ((await response.json()) as UIMessage[]) : undefined;
  };
  const messages = async (): Promise<UIMessage[]> => (await tryRead()) ?? [];
  const agree = async (page: Page): Promise<void> => {
    await until(async () => (await readPage(page)).pending.length === 0, PAGE_TIMEOUT_MS);
    let stored: readonly UIMessage[] | undefined;
    const agrees = async (): Promise<boolean> => {
      stored = (await tryRead()) ?? stored;
      const shown = toEssence((await readPage(page)).messages);
      if (stored !== undefined && isDeepStrictEqual(shown, toEssence(stored))) return true;
      await wait(READ_AGAIN_MS);
      return false;
    };
    const isSame = await until(agrees, AGREE_MS).then(
      () => true,
      () => false,
    );
    // Says what differs.
    if (!isSame && stored === undefined) throw new Error(`the server could not be read for ${AGREE_MS} ms`);
    if (!isSame) deepStrictEqual(toEssence((await readPage(page)).messages), toEssence(stored!));
  };
  return {
    id,
    effects: state.effects,
    told: () => state.told.at(-1) ?? '',
    maker: () => state.maker,
    page: async (tries) => open(await context.newPage(), fronts[0]!, tries),
    elsewhere: async (own, tries) => open(await (own ?? browser).newPage(), fronts[1]!, tries),
    release: state.gate.resolve,
    cut: (isCut) => fronts[0]!.cut(isCut),
    silence: (isSilent) => fronts[0]!.silence(isSilent),
    messages,
    logIn: (user) => context.addCookies([{ name: 'user', value: user, url: fronts[0]!.url }]),
    async agree(...given) {
      for (const page of given.length > 0 ? given : pages) if (!page.isClosed()) await agree(page);
    },
    async [Symbol.asyncDispose]() {
      state.gate.resolve();
      for (const page of pages) await page.close();
      for (const front of fronts) await front[Symbol.asyncDispose]();
    },
  };
}

const readPage = (page: Page) =>
  page.evaluate(() => {
    const { messages, pending } = (window as unknown as ChatWindow).chat;
    return { messages, pending };
  });

/** What users see of messages: who says what, and how each call stands. Ids of an agent's replies differ. */
function toEssence(messages: readonly UIMessage[]): readonly string[] {
  return messages.map(({ role, parts }) => {
    const shown = (parts as readonly Record<string, unknown>[]).flatMap((part) => {
      if (part['type'] === 'step-start') return [];
      if (part['type'] === 'text') return [part['text']];
      return 'toolCallId' in part ? [part['state'], part['errorText'] ?? null] : [part['type']];
    });
    return JSON.stringify([role, ...shown]);
  });
}

/** Resolves when the last stored reply of a chat has this text. */
export function untilStored(site: Site, text: string): Promise<void> {
  return until(async () => toText((await site.messages()).at(-1)) === text, PAGE_TIMEOUT_MS);
}

export const toText = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

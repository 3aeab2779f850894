// Two instances of an application in separate processes, on one store, behind balancers, and people in a real browser.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { UIMessage } from 'ai';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { until } from '../../promises/fixture.ts';
import { type Child, startProgram } from '../../tasks/child.ts';
import { bundlePage, type ChatPage, launchBrowser, openContext, openPage } from '../chat-page.ts';
import { type Front, openFront } from './front.ts';
import { openScript, type Script, type SiteState } from './script.ts';

export type Kind = 'reply' | 'agent';

export interface WebHarnessOptions {
  readonly kind: Kind;
  /** The address of the store. */
  readonly store: string;
  /** Where the packages are installed, with a copy of `test/web`. Without it our sources are used. */
  readonly folder?: string | undefined;
}

/** A separate chat. */
export interface Site extends AsyncDisposable, Pick<SiteState, 'effects'> {
  readonly id: string;
  /** The model's last request, as text. */
  told(): string;
  /** The process that replies. */
  maker(): number | undefined;
  /** Opens a tab of one browser. */
  page(): Promise<ChatPage>;
  /** Opens a page of another browser, which prefers the other instance. */
  elsewhere(): Promise<ChatPage>;
  /** Releases the model and the tools. */
  release(): void;
  /** Cuts the connections of the first browser, until it is called with `false`. */
  cut(isCut: boolean): void;
  messages(): Promise<readonly UIMessage[]>;
}

export interface WebHarness extends AsyncDisposable {
  readonly kind: Kind;
  open(): Promise<Site>;
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

interface Instance {
  readonly child: Child;
  readonly port: number;
}

export async function openHarness(options: WebHarnessOptions): Promise<WebHarness> {
  const { folder = join(import.meta.dirname, '../..'), kind, store } = options;
  const temporary = mkdtempSync(join(tmpdir(), 'whoa-harness-'));
  const file = join(temporary, 'page.js');
  const isInstalled = options.folder !== undefined;
  writeFileSync(file, await bundlePage({ page: join(folder, 'web/page.ts'), isInstalled }));
  const script = await openScript();
  const args = [store, script.modelUrl, script.controlUrl, file, kind, `${LEASE_MS}`];
  const start = async (): Promise<Instance> => {
    const child = startProgram(join(folder, 'web/scenarios/server.ts'), args, { isInstalled });
    return { child, port: (await child.hear<{ type: string; port: number }>(({ type }) => type === 'listening')).port };
  };
  const instances = await Promise.all(INSTANCES.map(start));
  const browser = await launchBrowser();
  const context = await openContext(browser);
  const alive = ({ child }: Instance): boolean => child.process.exitCode === null && child.process.signalCode === null;
  const ports = (first: number) => (): number[] =>
    [instances[first]!, instances[1 - first]!].filter(alive).map(({ port }) => port);
  let sites = 0;
  const prefix = `site-${kind}-${process.pid.toString(36)}`;
  return {
    kind,
    async open() {
      const fronts = await Promise.all(INSTANCES.map((first) => openFront(ports(first))));
      return openSite(`${prefix}-${++sites}`, { fronts, browser, context, script });
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
  const open = (page: Page, front: Front): Promise<ChatPage> => {
    pages.push(page);
    page.setDefaultTimeout(PAGE_TIMEOUT_MS);
    return openPage(page, `${front.url}/?id=${id}`);
  };
  return {
    id,
    effects: state.effects,
    told: () => state.told.at(-1) ?? '',
    maker: () => state.maker,
    page: async () => open(await context.newPage(), fronts[0]!),
    elsewhere: async () => open(await browser.newPage(), fronts[1]!),
    release: state.gate.resolve,
    cut: (isCut) => fronts[0]!.cut(isCut),
    async messages() {
      const response = await fetch(`${fronts[1]!.url}/api/chat/${id}/messages`);
      // A busy server may reject once; the caller retries.
      return response.ok ? ((await response.json()) as UIMessage[]) : [];
    },
    async [Symbol.asyncDispose]() {
      state.gate.resolve();
      for (const page of pages) await page.close();
      for (const front of fronts) await front[Symbol.asyncDispose]();
    },
  };
}

/** Resolves when the last stored reply of a chat has this text. */
export function untilStored(site: Site, text: string): Promise<void> {
  return until(async () => toText((await site.messages()).at(-1)) === text, PAGE_TIMEOUT_MS);
}

export const toText = (message: UIMessage | undefined): string =>
  (message?.parts ?? []).map((part) => (part.type === 'text' ? part.text : '')).join('');

import { setTimeout as wait } from 'node:timers/promises';
import { build, stop } from 'esbuild';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { findChromium } from './chromium.ts';
import type { ChatWindow } from './page.ts';

export interface ChatPage {
  readonly page: Page;
  send(text: string): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when the last reply shows so much. */
  shows(text: string): Promise<void>;
  status(status: string): Promise<void>;
  replies(): Promise<readonly string[]>;
  finishes(): Promise<ChatWindow['finishes']>;
  evaluate<T>(work: (page: ChatWindow) => T | Promise<T>): Promise<T>;
}

interface BundleOptions {
  /** The file of the page. */
  readonly page?: string;
  readonly mode?: 'development' | 'production' | undefined;
  /** It uses the packages that are installed there, and not our sources. */
  readonly isInstalled?: boolean;
}

/** The page as one script. */
export async function bundlePage({
  page = `${import.meta.dirname}/page.ts`,
  mode = 'development',
  isInstalled = false,
}: BundleOptions = {}): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [page],
    bundle: true,
    // A page is loaded hundreds of times.
    minify: true,
    write: false,
    format: 'esm',
    target: 'es2022',
    conditions: isInstalled ? [] : ['@whoa/source'],
    define: { 'process.env.NODE_ENV': `"${mode}"` },
    logLevel: 'silent',
  });
  await stop();
  return outputFiles[0]!.text;
}

/** Its pages share a process, unless they are isolated: those of tests that run at the same time would wait for each other. */
export function launchBrowser({ isIsolated = false } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    args: [
      '--no-sandbox',
      '--disable-dev-shm-usage',
      '--disable-gpu',
      '--disable-software-rasterizer',
      '--disable-background-networking',
      '--disable-sync',
      // A page with this name over plain HTTP is not secure.
      '--host-resolver-rules=MAP intranet.test 127.0.0.1',
      // A process for each page would take longer to start than the page.
      '--renderer-process-limit=1',
      ...(isIsolated ? [] : ['--disable-site-isolation-trials']),
    ],
  });
}

/** A context for all pages of a file: it fetches the script once, and its first page keeps the process of the others. */
export async function openContext(browser: Browser): Promise<BrowserContext> {
  const context = await browser.newContext();
  await context.newPage();
  return context;
}

/** How long a page may take to be there, if it is loaded again otherwise. */
const LOAD_MS = 20_000;
const LOAD_AGAIN_MS = 1_000;

/** Loads a page until it shows a chat, as people do while the server is away. */
export async function loadAgain(page: Page, url: string, tries: number): Promise<void> {
  for (let left = tries; ; left--)
    try {
      // A page that could not be loaded has no way to be loaded again.
      await (page.url() === url ? page.reload() : page.goto(url));
      return void (await page.waitForSelector('#status', left > 1 ? { timeout: LOAD_MS } : {}));
    } catch (error) {
      if (left <= 1) throw error;
      await wait(LOAD_AGAIN_MS);
    }
}

/** Opens a chat and waits until it is there. */
export async function openPage(page: Page, url: string, tries = 1): Promise<ChatPage> {
  await loadAgain(page, url, tries);
  const evaluate: ChatPage['evaluate'] = (work) => page.evaluate(`(${work.toString()})(window)`);
  const chat: ChatPage = {
    page,
    evaluate,
    send: (text) =>
      page.evaluate((said) => void (window as unknown as ChatWindow).chat.sendMessage({ text: said }), text),
    stop: async () => void (await evaluate((own) => own.chat.stop())),
    shows: async (text) => {
      await page.waitForFunction(
        (wanted) => [...document.querySelectorAll('p.assistant')].at(-1)?.textContent === wanted,
        text,
      );
    },
    status: async (status) => {
      await page.waitForFunction((wanted) => document.querySelector('#status')?.textContent === wanted, status);
    },
    replies: () => page.$$eval('p.assistant', (all) => all.map(({ textContent }) => textContent ?? '')),
    finishes: () => evaluate((own) => own.finishes),
  };
  return chat;
}

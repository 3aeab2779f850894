// User actions in a chat, and what users see.
import { expect } from 'vitest';
import { until } from '../../promises/fixture.ts';
import { ALL, HALF } from '../browser.ts';
import type { ChatPage } from '../chat-page.ts';
import type { ChatWindow } from '../page.ts';
import type { Kind, Site, WebHarness } from './harness.ts';

export interface Scenario {
  readonly name: string;
  /** Only the application's own loop asks questions in the page. */
  readonly kinds?: readonly Kind[];
  /** It ends instances, so nothing else may run at the same time. */
  readonly isAlone?: boolean;
  /** It takes too long for every change. */
  readonly isLong?: boolean;
  readonly run: (site: Site, harness: WebHarness) => Promise<void>;
}

export const REPLY_ONLY: readonly Kind[] = ['reply'];

/** Opens a page and sends a message that names the site for the model and the tools. */
export async function said(site: Site, what: string): Promise<ChatPage> {
  const chat = await site.page();
  await chat.send(`${what} ${site.id}`);
  return chat;
}

export async function half(site: Site): Promise<ChatPage> {
  const chat = await said(site, 'half');
  await chat.shows(HALF);
  return chat;
}

/** A page whose last call is in this state. */
export async function callIs({ page }: ChatPage, state: string): Promise<void> {
  await page.waitForFunction((wanted) => [...document.querySelectorAll('code')].at(-1)?.textContent === wanted, state);
}

export async function calling(site: Site, tool: string, state = 'input-available'): Promise<ChatPage> {
  const chat = await said(site, `call ${tool}`);
  await callIs(chat, state);
  if (tool !== 'pay' && tool !== 'locate') await until(() => site.effects.includes(`${tool} started`));
  return chat;
}

/** The page is idle, and no error was shown. */
export async function isQuiet(chat: ChatPage): Promise<void> {
  await chat.status('ready');
  expect(await chat.evaluate((page) => page.errors)).toEqual([]);
}

/** The next message is answered, and the provider, which is strict, was sent a valid history. */
export async function goesOn(chat: ChatPage, site: Site): Promise<void> {
  await chat.send(`all ${site.id}`);
  await chat.shows(ALL);
  await isQuiet(chat);
}

export async function approve({ page }: ChatPage, approved: boolean): Promise<void> {
  await page.evaluate((yes) => {
    const { chat } = window as unknown as ChatWindow;
    const part = chat.messages.at(-1)!.parts.findLast((one) => one.type === 'tool-pay') as unknown;
    Promise.resolve(
      chat.addToolApprovalResponse({ id: (part as { approval: { id: string } }).approval.id, approved: yes }),
    ).catch(() => {});
  }, approved);
}

export async function located({ page }: ChatPage, end: object): Promise<void> {
  await page.evaluate((given) => {
    const { chat } = window as unknown as ChatWindow;
    const part = chat.messages.at(-1)!.parts.findLast((one) => one.type === 'tool-locate') as unknown;
    const { toolCallId } = part as { toolCallId: string };
    Promise.resolve(chat.addToolOutput({ tool: 'locate', toolCallId, ...given } as never)).catch(() => {});
  }, end);
}

export const regenerate = ({ page }: ChatPage): Promise<void> =>
  page.evaluate(() => void (window as unknown as ChatWindow).chat.regenerate());

/** Replaces the first message with another. */
export const edit = ({ page }: ChatPage, text: string): Promise<void> =>
  page.evaluate((words) => {
    const { chat } = window as unknown as ChatWindow;
    Promise.resolve(chat.sendMessage({ text: words, messageId: chat.messages[0]!.id })).catch(() => {});
  }, text);

export const lastStored = async (site: Site): Promise<string> => JSON.stringify((await site.messages()).at(-1));

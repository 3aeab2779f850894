// The tabs of one browser and a phone in a random history, and what a user does in them.
import type { BrowserContext, Route } from 'playwright-core';
import type { ChatPage } from '../chat-page.ts';
import type { ChatWindow } from '../page.ts';
import { regenerate } from '../scenarios/acts.ts';
import type { Site } from '../scenarios/harness.ts';

export interface Tab {
  readonly chat: ChatPage;
  readonly url: string;
  /** Another browser, whose network never fails. */
  readonly isPhone: boolean;
  /** Who was logged in when it was loaded. */
  user: string;
}

export interface Look {
  readonly status: string;
  readonly errors: readonly string[];
  readonly pending: readonly { readonly id: string; readonly kind: string; readonly isKept: boolean }[];
  /** The words of the last turn. */
  readonly said: string;
  readonly isLastReply: boolean;
  /** The calls that wait, by their state. */
  readonly waiting: readonly { readonly id: string; readonly state: string; readonly type: string }[];
}

export const look = ({ chat }: Tab): Promise<Look> =>
  chat.page.evaluate(() => {
    const { chat: own, errors } = window as unknown as ChatWindow;
    const { messages, status, pending } = own;
    const last = messages.at(-1);
    const user = messages.findLast(({ role }) => role === 'user');
    type Call = { toolCallId: string; state: string; type: string };
    const calls = (last?.parts ?? []).filter((part) => 'toolCallId' in part) as unknown as Call[];
    return {
      status,
      errors,
      pending: pending.map(({ id, kind, isKept }) => ({ id, kind, isKept })),
      said: user?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? '',
      isLastReply: last?.role === 'assistant',
      waiting: calls
        .filter(({ state }) => state === 'approval-requested' || state === 'input-available')
        .map(({ toolCallId, state, type }) => ({ id: toolCallId, state, type })),
    };
  });

const loseCommands = (route: Route): Promise<void> =>
  route.request().method() === 'POST' ? route.abort('connectionreset') : route.continue();

/** The ways between a browser and the server. */
export const OUTAGES: Readonly<
  Record<string, { readonly keepsReads: boolean; set(site: Site, context: BrowserContext, on: boolean): Promise<void> }>
> = {
  cut: { keepsReads: false, set: (site, _, on) => Promise.resolve(site.cut(on)) },
  silence: { keepsReads: false, set: (site, _, on) => Promise.resolve(site.silence(on)) },
  offline: { keepsReads: false, set: (_, context, on) => context.setOffline(on) },
  lose: {
    keepsReads: true,
    async set(_, context, on) {
      await (on ? context.route('**/api/**', loseCommands) : context.unroute('**/api/**', loseCommands));
    },
  },
};

/** Answers a call, if the page still shows it as open. */
export const answer = ({ chat }: Tab, toolCallId: string, kind: 'yes' | 'no' | 'output'): Promise<void> =>
  chat.page.evaluate(
    (given) => {
      const { chat: own } = window as unknown as ChatWindow;
      type Call = { toolCallId: string; state: string; approval?: { id: string } };
      const calls = own.messages.flatMap(({ parts }) => parts) as unknown as Call[];
      const call = calls.findLast((one) => one.toolCallId === given.toolCallId);
      const end =
        given.kind === 'output'
          ? call?.state === 'input-available' &&
            own.addToolOutput({ tool: 'locate', toolCallId: given.toolCallId, output: 'Oslo' } as never)
          : call?.state === 'approval-requested' &&
            own.addToolApprovalResponse({ id: call.approval!.id, approved: given.kind === 'yes' });
      Promise.resolve(end).catch(() => {});
    },
    { toolCallId, kind },
  );

/** Resolves when a page shows nothing that is on its way, and no reply that runs if that is asked for. */
export const untilQuiet = (
  { chat }: Tab,
  { isIdle, timeout }: { isIdle: boolean; timeout: number },
): Promise<unknown> =>
  chat.page.waitForFunction(
    (wantsIdle) => {
      const { pending, status } = (window as unknown as ChatWindow).chat;
      return pending.length === 0 && (!wantsIdle || status === 'ready' || status === 'error');
    },
    isIdle,
    { timeout, polling: 200 },
  );

export const ACTS = {
  regenerate: ({ chat }: Tab) => regenerate(chat),
  stop: ({ chat }: Tab) => chat.page.evaluate(() => void (window as unknown as ChatWindow).chat.stop()),
  stopTwice: ({ chat }: Tab) =>
    chat.page.evaluate(() => {
      const own = window as unknown as ChatWindow;
      own.chat.stop().catch(() => {});
      own.chat.stop().catch(() => {});
    }),
  rollback: ({ chat }: Tab) =>
    chat.page.evaluate(() => void (window as unknown as ChatWindow).chat.stop({ rollback: true })),
  giveUp: ({ chat }: Tab) =>
    chat.page.evaluate(() => {
      const { chat: own } = window as unknown as ChatWindow;
      own.giveUp(own.pending[0]?.id ?? '');
    }),
};

// One random history of a chat: what a user does in the tabs of a browser and on a phone, while the network and the servers
// fail.
import { setTimeout as wait } from 'node:timers/promises';
import type { UIMessage } from 'ai';
import type { BrowserContext } from 'playwright-core';
import { loadAgain, openContext } from '../chat-page.ts';
import type { Site, WebHarness } from '../scenarios/harness.ts';
import { judge, OWNER } from './judge.ts';
import { type Command, type GivenKind, Orders } from './orders.ts';
import { ACTS, answer, type Look, look, OUTAGES, type Tab, untilQuiet } from './tabs.ts';

/** A bug that is planted in the page, to see whether it is found. */
export type Plant = 'forget' | 'stop-any';

export type Fault = 'kill' | 'deploy' | 'all';

export interface HistoryParts {
  readonly harness: WebHarness;
  readonly random: () => number;
  readonly browsers: Browsers;
  /** Ends instances and starts them again; not for a store in memory. */
  readonly disturb: ((fault: Fault) => Promise<void>) | undefined;
}

export interface Verdict {
  readonly violations: readonly string[];
  readonly steps: readonly string[];
  /** What the server has in the end, and what became of each command. */
  readonly details?: string;
}

const SAYINGS = ['all', 'hold', 'hold', 'stall', 'call look', 'call pay', 'call pay', 'call locate'];
const MAX_STEPS = 12;
const MIN_STEPS = 5;
const MAX_PAUSE_MS = 700;
const MAX_TABS = 2;
/** A silent request is given up after 30 s, and then repeated. */
const QUIET_MS = 120_000;
const READ_AGAIN_MS = 1_000;
/** How often a page is loaded, or a chat is read, while instances end and start. */
const LOADS = 60;

const PLANTS: Readonly<Record<Plant, string>> = {
  /** The outbox forgets on reload. */
  forget: `const set = Storage.prototype.setItem;
    Storage.prototype.setItem = function (name, value) {
      if (!name.startsWith('whoa-outbox')) set.call(this, name, value);
    };`,
  /** A stop does not name what it stops. */
  'stop-any': `const real = window.fetch;
    window.fetch = (url, init) => real(url, String(url).endsWith('/stop') ? { ...init, body: '{}' } : init);`,
};

/** The browser of the tabs and that of the phone. They play one history after another: opening one is dear. */
export interface Browsers {
  readonly tabs: BrowserContext;
  readonly phone: BrowserContext;
  /** Of the history that is played. */
  orders: Orders;
}

export async function openBrowsers({ browser }: WebHarness, plant: Plant | undefined): Promise<Browsers> {
  const browsers: Browsers = {
    tabs: await openContext(browser),
    phone: await openContext(browser),
    orders: new Orders(),
  };
  for (const context of [browsers.tabs, browsers.phone]) {
    if (plant !== undefined) await context.addInitScript(PLANTS[plant]);
    await context.exposeBinding('noteGiven', ({ page }, given: Command) => browsers.orders.note(page, given));
    await context.exposeBinding('noteSettled', (_, given: Command, error?: string) =>
      browsers.orders.settle(given, error),
    );
  }
  return browsers;
}

/** Plays one history, and judges it. */
export async function playHistory(parts: HistoryParts): Promise<Verdict> {
  const { tabs } = parts.browsers;
  parts.browsers.orders = new Orders();
  await using site = await parts.harness.open(tabs);
  try {
    return await new History(site, parts).play();
  } finally {
    await tabs.setOffline(false);
    await tabs.unrouteAll({ behavior: 'ignoreErrors' });
    await tabs.clearCookies();
  }
}

class History {
  readonly #site: Site;
  readonly #parts: HistoryParts;
  readonly #orders: Orders;
  readonly #steps: string[] = [];
  #tabs: Tab[] = [];
  #phone: Tab | undefined;
  #user = OWNER;
  #outage: string | undefined;

  constructor(site: Site, parts: HistoryParts) {
    this.#site = site;
    this.#parts = parts;
    this.#orders = parts.browsers.orders;
  }

  async play(): Promise<Verdict> {
    await this.#openTab();
    const steps = MIN_STEPS + Math.floor(this.#parts.random() * (MAX_STEPS - MIN_STEPS + 1));
    await this.#send(this.#tabs[0]!);
    while (this.#steps.length < steps) {
      await wait(this.#parts.random() * MAX_PAUSE_MS);
      await this.#step();
    }
    return this.#end();
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#parts.random() * choices.length)]!;
  }

  async #step(): Promise<void> {
    const tab = this.#pick(this.#tabs);
    const state = await look(tab);
    const mayLoad = this.#outage === undefined || OUTAGES[this.#outage]!.keepsReads;
    const { waiting, pending } = state;
    const isBusy = state.status !== 'ready' && state.status !== 'error';
    const isAsked = waiting.some((call) => call.state === 'approval-requested') && !isBusy;
    const isLocating = waiting.some(({ type }) => type === 'tool-locate') && !isBusy;
    const isStopPending = pending.some(({ kind }) => kind === 'stop');
    const choices: [weight: number, run: () => Promise<void>][] = [
      [3, () => this.#send(tab)],
      [isBusy || waiting.length > 0 ? 4 : 1, () => this.#act(tab, this.#pick(['stop', 'stopTwice']))],
      [isAsked ? 6 : 0, () => this.#answer(tab, this.#pick(['yes', 'yes', 'no']))],
      [isLocating ? 6 : 0, () => this.#answer(tab, 'output')],
      [state.isLastReply ? 1 : 0, () => this.#act(tab, 'regenerate')],
      [isBusy ? 1 : 0, () => this.#act(tab, 'rollback')],
      [pending.length > 0 ? 1 : 0, () => this.#giveUp(tab)],
      // What matters is a page that is loaded again, or another device that is used, while commands wait.
      [mayLoad ? (pending.length > 0 ? 5 : 1) : 0, () => this.#reload(tab)],
      [isStopPending ? 4 : 0.2, () => this.#usePhone()],
      [mayLoad && this.#tabs.length < MAX_TABS ? 1 : 0, () => this.#openTab()],
      [this.#tabs.length > 1 ? 0.5 : 0, () => this.#closeTab(tab)],
      [this.#outage === undefined ? 4 : 0, () => this.#begin(this.#pick(['lose', ...Object.keys(OUTAGES)]))],
      [this.#outage === undefined ? 0 : 3, () => this.#heal()],
      [this.#parts.disturb ? 1 : 0, () => this.#disturb(this.#pick(['kill', 'kill', 'deploy', 'all']))],
      [0.7, () => this.#logIn(this.#user === OWNER ? 'bob' : OWNER)],
    ];
    let left = this.#parts.random() * choices.reduce((sum, [weight]) => sum + weight, 0);
    const [, run] = choices.find(([weight]) => (left -= weight) < 0)!;
    await run();
  }

  #note(what: string, tab?: Tab): void {
    const name = tab?.isPhone ? 'phone' : `tab ${this.#tabs.indexOf(tab!)}`;
    this.#steps.push(tab === undefined ? what : `${what} (${name})`);
  }

  #give(tab: Tab, about: { readonly kind: GivenKind; readonly turn: string; readonly call?: string }): void {
    this.#note(`${about.kind} ${about.call ?? ''} '${about.turn}'`, tab);
    this.#orders.give({ ...about, at: this.#steps.length, page: tab.chat.page, user: tab.user });
  }

  async #send(tab: Tab): Promise<void> {
    const turn = `${this.#pick(SAYINGS)} ${this.#site.id} n${this.#steps.length}`;
    this.#give(tab, { kind: 'send', turn });
    await tab.chat.send(turn);
  }

  async #act(tab: Tab, name: 'stop' | 'stopTwice' | 'regenerate' | 'rollback'): Promise<void> {
    const { said: turn } = await look(tab);
    this.#give(tab, { kind: name === 'stopTwice' ? 'stop' : name, turn });
    await ACTS[name](tab);
  }

  async #answer(tab: Tab, kind: 'yes' | 'no' | 'output'): Promise<void> {
    const { waiting, said: turn } = await look(tab);
    const call = waiting.findLast(({ type }) => type === (kind === 'output' ? 'tool-locate' : 'tool-pay'))?.id;
    if (call === undefined) return;
    this.#give(tab, { kind, turn, call });
    await answer(tab, call, kind);
  }

  async #giveUp(tab: Tab): Promise<void> {
    this.#note('giveUp', tab);
    await ACTS.giveUp(tab);
  }

  async #reload(tab: Tab): Promise<void> {
    this.#note('reload', tab);
    const { pending } = await look(tab);
    this.#forget(pending.filter(({ isKept }) => !isKept));
    await loadAgain(tab.chat.page, tab.url, LOADS);
    tab.user = this.#user;
  }

  #forget(pending: Look['pending']): void {
    this.#orders.forget(pending.map(({ id }) => id));
  }

  async #openTab(): Promise<void> {
    this.#note('open');
    const chat = await this.#site.page(LOADS);
    this.#tabs.push({ chat, url: chat.page.url(), isPhone: false, user: this.#user });
  }

  async #closeTab(tab: Tab): Promise<void> {
    this.#note('close', tab);
    const { pending } = await look(tab);
    this.#forget(pending);
    this.#tabs = this.#tabs.filter((one) => one !== tab);
    await tab.chat.page.close({ runBeforeUnload: false });
  }

  async #usePhone(): Promise<void> {
    if (this.#phone === undefined) {
      const chat = await this.#site.elsewhere(this.#parts.browsers.phone, LOADS);
      this.#phone = { chat, url: chat.page.url(), isPhone: true, user: OWNER };
    }
    await this.#send(this.#phone);
  }

  async #begin(name: string): Promise<void> {
    this.#note(`${name} begins`);
    this.#outage = name;
    await OUTAGES[name]!.set(this.#site, this.#parts.browsers.tabs, true);
  }

  async #heal(): Promise<void> {
    if (this.#outage === undefined) return;
    this.#note(`${this.#outage} ends`);
    await OUTAGES[this.#outage]!.set(this.#site, this.#parts.browsers.tabs, false);
    this.#outage = undefined;
  }

  async #disturb(fault: Fault): Promise<void> {
    this.#note(fault);
    await this.#parts.disturb!(fault);
  }

  async #logIn(user: string): Promise<void> {
    this.#note(`${user} logs in`);
    this.#user = user;
    await this.#site.logIn(user);
  }

  /** Everything works again, and the model and the tools are released when the server has every command. */
  async #end(): Promise<Verdict> {
    const found: string[] = [];
    await this.#heal();
    if (this.#user !== OWNER) await this.#logIn(OWNER);
    for (const tab of this.#tabs) if (tab.user !== OWNER) await this.#reload(tab);
    const pages = [...this.#tabs, ...(this.#phone ? [this.#phone] : [])];
    for (const isIdle of [false, true]) {
      if (isIdle) this.#site.release();
      for (const tab of pages)
        await untilQuiet(tab, { isIdle, timeout: QUIET_MS }).catch(async () => {
          found.push(`stuck: ${JSON.stringify(await look(tab))}`);
        });
    }
    const shown = await Promise.all(pages.map(look));
    for (const { chat, isPhone } of pages)
      await this.#site
        .agree(chat.page)
        .catch((error: unknown) =>
          found.push(`a page differs${isPhone ? ', the phone' : ''}: ${String(error).slice(0, 2_000)}`),
        );
    const messages = await this.#read();
    const { given } = this.#orders;
    const violations = [...found, ...judge({ messages, effects: this.#site.effects, given })];
    const told = given.map(({ kind, turn, orders }) => ({ kind, turn, orders }));
    const details = [messages, told, shown].map((one) => JSON.stringify(one)).join('\n  ');
    return { violations, steps: this.#steps, details };
  }

  /** Instances that others end may be away. */
  async #read(): Promise<readonly UIMessage[]> {
    for (let left = LOADS; ; left--) {
      const messages = await this.#site.messages();
      if (messages.length > 0 || left <= 1) return messages;
      await wait(READ_AGAIN_MS);
    }
  }
}

// What the user of a history did, and the commands that the page made of it.
import type { Page } from 'playwright-core';

export type GivenKind = 'send' | 'yes' | 'no' | 'output' | 'stop' | 'rollback' | 'regenerate';

/** What a user did. */
export interface Given {
  readonly kind: GivenKind;
  /** The words of the turn: of the message that is sent, or of the last one that the page shows. */
  readonly turn: string;
  /** The id of the call that is answered. */
  readonly call?: string;
  readonly at: number;
  readonly page: Page;
  readonly user: string;
  readonly orders: Order[];
  /** The words of all turns that its commands name. */
  readonly turns: Set<string>;
}

/** A command that a page has made of it. */
export interface Order {
  readonly id: string;
  /** The reply that it names, by its message. */
  readonly messageId: string | undefined;
  /** `open`: the server has neither acknowledged nor refused it. */
  end: 'open' | 'acknowledged' | 'refused';
  /** Its tab was closed before, or its page was loaded again and had said that it is not kept. */
  mayBeLost: boolean;
}

/** The kinds of commands that something a user did can become. */
const COMMANDS: Readonly<Record<string, readonly GivenKind[]>> = {
  send: ['send'],
  answer: ['yes', 'no'],
  output: ['output'],
  stop: ['stop'],
  rollback: ['rollback'],
  regenerate: ['regenerate'],
};

export interface Command {
  readonly id: string;
  readonly kind: string;
  readonly body: object;
}

/** Relates the commands of the pages to what the user did in them. */
export class Orders {
  readonly given: Given[] = [];
  readonly #orders = new Map<string, Order>();
  /** The words of the turn of each run. */
  readonly #runs = new Map<string, string>();

  give(about: Omit<Given, 'orders' | 'turns'>): void {
    this.given.push({ ...about, orders: [], turns: new Set([about.turn]) });
  }

  /** A page has made a command of what its user did last. */
  note(page: Page, { id, kind, body }: Command): void {
    const { runId = '', messageId } = body as { readonly runId?: string; readonly messageId?: string };
    const order: Order = { id, messageId, end: 'open', mayBeLost: false };
    this.#orders.set(id, order);
    const text = JSON.stringify(body);
    const isOwn = (one: Given): boolean => one.page === page && COMMANDS[kind]!.includes(one.kind);
    const given = this.given.findLast((one) => isOwn(one) && (one.kind !== 'send' || text.includes(`"${one.turn}"`)));
    if (given === undefined) return;
    given.orders.push(order);
    this.#runs.set(id, given.turn);
    given.turns.add(this.#runs.get(runId) ?? given.turn);
  }

  settle({ id }: Command, error: string | undefined): void {
    const order = this.#orders.get(id);
    if (order) order.end = error === undefined ? 'acknowledged' : 'refused';
  }

  /** What a tab has not sent yet ends with it, or is forgotten. */
  forget(ids: readonly string[]): void {
    for (const id of ids) {
      const order = this.#orders.get(id);
      if (order) order.mayBeLost = true;
    }
  }
}

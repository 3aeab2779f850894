import type { Command } from './command.ts';

/** A command with a file stays in memory: browsers give a page about 5 MB. */
const MAX_CHARACTERS = 200_000;

interface Kept {
  readonly at: number;
  readonly command: Command;
}

/** Keeps the commands of this tab over a reload, each under its own key, if the browser lets it. */
export class CommandStorage {
  readonly #prefix: string;
  #count = 0;

  constructor(name: string) {
    this.#prefix = `whoa-outbox ${name} `;
  }

  /** Returns whether it is kept. One that names no one is not: after a reload it would be another user's. */
  add(command: Command): boolean {
    const text = JSON.stringify({ at: Date.now() + this.#count++ / 1_000, command } satisfies Kept);
    if (command.principal === undefined || text.length > MAX_CHARACTERS) return false;
    try {
      sessionStorage.setItem(this.#key(command), text);
      return true;
    } catch {
      // It is full, not allowed, or there is none.
      return false;
    }
  }

  remove(command: Command): void {
    try {
      sessionStorage.removeItem(this.#key(command));
    } catch {
      // Not allowed, or there is none.
    }
  }

  /** Returns the commands of a chat, the oldest first. */
  read(chatId: string): readonly Command[] {
    try {
      const prefix = this.#key({ chatId, id: '' });
      const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(prefix));
      const kept = keys.flatMap((key) => parse(sessionStorage.getItem(key)!));
      return kept.toSorted((one, other) => one.at - other.at).map(({ command }) => command);
    } catch {
      return [];
    }
  }

  #key({ chatId, id }: Pick<Command, 'chatId' | 'id'>): string {
    return `${this.#prefix}${encodeURIComponent(chatId)} ${id}`;
  }
}

/** What another program, or another release, has written there is no command. */
function parse(text: string): readonly Kept[] {
  try {
    const kept = JSON.parse(text) as Kept;
    return kept.command.body ? [kept] : [];
  } catch {
    return [];
  }
}

import type { Command } from './command.ts';

/** A command with a file stays in memory: browsers give a page about 5 MB. */
const MAX_CHARACTERS = 200_000;

interface Kept {
  readonly at: number;
  readonly command: Command;
}

/** Uses the storage, which may be full, not allowed or missing. */
export function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
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
    const put = (): boolean => {
      sessionStorage.setItem(this.#key(command), text);
      return true;
    };
    return attempt(put) ?? false;
  }

  remove(command: Command): void {
    attempt(() => sessionStorage.removeItem(this.#key(command)));
  }

  /** Returns the commands of a chat, the oldest first. */
  read(chatId: string): readonly Command[] {
    const prefix = this.#key({ chatId, id: '' });
    // What another program, or another release, has written there is no command.
    const read = (key: string): Kept | undefined => {
      const kept = JSON.parse(sessionStorage.getItem(key)!) as Kept;
      return kept.command.body ? kept : undefined;
    };
    const keys = Object.keys(attempt(() => sessionStorage) ?? {});
    const kept = keys.flatMap((key) => (key.startsWith(prefix) && attempt(() => read(key))) || []);
    return kept.toSorted((one, other) => one.at - other.at).map(({ command }) => command);
  }

  #key({ chatId, id }: Pick<Command, 'chatId' | 'id'>): string {
    return `${this.#prefix}${encodeURIComponent(chatId)} ${id}`;
  }
}

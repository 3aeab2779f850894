import { randomBytes } from 'node:crypto';

/** How many messages may be incomplete at the same time: those that lost a piece never end. */
const MAX_OPEN = 64;

/** Splits a message into texts of a limited length, for a bus that carries only short texts. */
export function toPieces(message: Uint8Array, maxLength: number): readonly string[] {
  const text = Buffer.from(message).toString('base64');
  const id = randomBytes(6).toString('hex');
  const room = maxLength - 32;
  const count = Math.max(1, Math.ceil(text.length / room));
  // Postgres merges notifications that are equal, so no two pieces are.
  return Array.from({ length: count }, (_, i) => `${id} ${i} ${count} ${text.slice(i * room, (i + 1) * room)}`);
}

/** Puts messages together again. Pieces may be lost, doubled or in any order. */
export class Joiner {
  readonly #open = new Map<string, string[]>();

  /** Returns the message that a piece completes. */
  add(piece: string): Uint8Array | undefined {
    const [, id, index, count, text] = /^([0-9a-f]{12}) (\d{1,4}) (\d{1,4}) ([\w+/=]*)$/.exec(piece) ?? [];
    if (id === undefined) return undefined;
    const parts = this.#open.get(id) ?? Array.from<string>({ length: Number(count) });
    parts[Number(index)] = text!;
    if (parts.length === Number(count) && !parts.includes(undefined as never)) {
      this.#open.delete(id);
      return Buffer.from(parts.join(''), 'base64');
    }
    if (!this.#open.has(id) && this.#open.size >= MAX_OPEN) this.#open.delete(this.#open.keys().next().value!);
    this.#open.set(id, parts);
    return undefined;
  }
}

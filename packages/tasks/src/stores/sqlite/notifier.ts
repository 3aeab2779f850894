import { closeSync, type FSWatcher, readSync, watch, writeSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { Hint } from '../../store.ts';
import { openNotifierFile } from './database-file.ts';

/** The last notification: some changes, and the number of the first. */
export interface Notification {
  readonly first: number;
  readonly hints: readonly Hint[];
}

/** Larger notifications contain no changes; listeners read them from the database. */
const MAX_NOTE_BYTES = 4_096;

/**
 * A file that processes on one machine write to wake each other. It contains the last changes, which saves listeners a
 * read of the database. Rings overwrite each other, so listeners ignore changes that do not continue the ones they
 * know.
 */
export class ChangeNotifier implements Disposable {
  readonly #path: string;
  readonly #file: number;
  readonly #note: Buffer = Buffer.alloc(MAX_NOTE_BYTES);
  #watcher: FSWatcher | undefined;

  constructor(path: string, database: string) {
    this.#path = path;
    this.#file = openNotifierFile(path, database);
  }

  /** Rings with some changes, each as JSON, and the number of the first. */
  notify(first: number, hints: readonly string[]): void {
    const text = `{"first":${first},"hints":[${hints.join(',')}]}`;
    const note = `${crc32(text)} ${text}\n`;
    const isTooLong = note.length > MAX_NOTE_BYTES || Buffer.byteLength(note) > MAX_NOTE_BYTES;
    writeSync(this.#file, isTooLong ? '\n' : note, 0);
  }

  /** Reads the last notification; `undefined` if it cannot be read, for example because another process is writing it. */
  readLast(): Notification | undefined {
    const length = readSync(this.#file, this.#note, 0, MAX_NOTE_BYTES, 0);
    const note = this.#note.toString('utf8', 0, length);
    const [sum, text] = splitOnce(note.slice(0, note.indexOf('\n')));
    return text !== '' && Number(sum) === crc32(text) ? (JSON.parse(text) as Notification) : undefined;
  }

  /** Listens from now on. A watcher that fails is not an error: polling finds all changes. */
  listen(onRing: () => void): void {
    if (this.#watcher !== undefined) return;
    this.#watcher = watch(this.#path, { persistent: false }, onRing);
    this.#watcher.on('error', () => this.silence());
  }

  silence(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  [Symbol.dispose](): void {
    this.silence();
    closeSync(this.#file);
  }
}

function splitOnce(text: string): [string, string] {
  const space = text.indexOf(' ');
  return [text.slice(0, space), text.slice(space + 1)];
}

import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  type FSWatcher,
  fchmodSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  statSync,
  unlinkSync,
  watch,
  writeSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { systemClock } from '@whoa/core/embed';
import { type Bus, Listeners, MAX_MESSAGE_BYTES } from './bus.ts';

/** Beyond this size the next file is begun, and the one before the last is removed. */
const MAX_FILE_BYTES = 4_000_000;

interface Part {
  readonly number: number;
  readonly file: number;
  at: number;
  rest: string;
  watcher?: FSWatcher | undefined;
}

/** The bus of one machine: files next to a database, to which all processes append, and which they watch. */
export class FileBus implements Bus {
  readonly inbox: string;
  readonly #database: string;
  readonly #pollIntervalMs: number;
  readonly #listeners = new Listeners();
  readonly #chunk: Buffer = Buffer.alloc(65_536);
  #old: Part | undefined;
  #now: Part;
  #poll: Disposable | undefined;
  #lookedAt = performance.now();

  constructor(database: string, pollIntervalMs: number, inbox: string = randomBytes(12).toString('hex')) {
    this.inbox = inbox;
    this.#database = database;
    this.#pollIntervalMs = pollIntervalMs;
    this.#now = this.#open(Math.max(1, this.#newest()));
  }

  send(inbox: string, message: Uint8Array): boolean {
    if (message.length > MAX_MESSAGE_BYTES) return false;
    const text = Buffer.from(message).toString('base64');
    try {
      if (performance.now() - this.#lookedAt > this.#pollIntervalMs) this.#follow();
      // The line before may have been cut off by a full disk or a crash.
      writeSync(this.#now.file, `\n${inbox} ${text.length} ${text}\n`);
      if (fstatSync(this.#now.file).size > MAX_FILE_BYTES) this.#turn(this.#now.number + 1);
      return true;
    } catch {
      return false;
    }
  }

  receive(listener: (message: Uint8Array) => void): Promise<Disposable> {
    if (this.#listeners.isEmpty) {
      this.#now.at = fstatSync(this.#now.file).size;
      this.#watch(this.#now);
      this.#pollLater();
    }
    return Promise.resolve(this.#listeners.add(listener, () => this.#stop()));
  }

  onGap(listener: () => void): Disposable {
    return this.#listeners.onGap(listener);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#stop();
    for (const part of [this.#old, this.#now]) if (part !== undefined) closeSync(part.file);
    return Promise.resolve();
  }

  #newest(): number {
    const prefix = `${basename(this.#database)}-bus.`;
    const names = readdirSync(dirname(this.#database)).filter((name) => name.startsWith(prefix));
    return Math.max(0, ...names.map((name) => Number(name.slice(prefix.length)) || 0));
  }

  #open(number: number): Part {
    return { number, file: openBusFile(this.#toPath(number), this.#database), at: 0, rest: '' };
  }

  #toPath(number: number): string {
    return `${this.#database}-bus.${number}`;
  }

  /** A watch that fails is no error: polling finds everything. */
  #watch(part: Part): void {
    try {
      part.watcher = watch(this.#toPath(part.number), { persistent: false }, () => this.#read(part));
      part.watcher.on('error', () => part.watcher?.close());
    } catch {}
  }

  #pollLater(): void {
    this.#poll = systemClock.setTimer(
      this.#pollIntervalMs,
      () => {
        this.#follow();
        if (this.#old !== undefined) this.#read(this.#old);
        this.#read(this.#now);
        this.#pollLater();
      },
      { keepAlive: false },
    );
  }

  #stop(): void {
    this.#poll?.[Symbol.dispose]();
    for (const part of [this.#old, this.#now]) part?.watcher?.close();
  }

  #read(part: Part): void {
    while (part === this.#now || part === this.#old) {
      const length = readSync(part.file, this.#chunk, 0, this.#chunk.length, part.at);
      if (length === 0) break;
      part.at += length;
      const lines = (part.rest + this.#chunk.toString('latin1', 0, length)).split('\n');
      part.rest = lines.pop()!;
      for (const line of lines) this.#take(line);
    }
    if (part === this.#now && part.at > MAX_FILE_BYTES) this.#turn(part.number + 1);
  }

  #take(line: string): void {
    const [inbox, length, text] = line.split(' ');
    if (inbox === this.inbox && text !== undefined && text.length === Number(length))
      this.#listeners.deliver(Buffer.from(text, 'base64'));
  }

  /** Others may have begun another file. */
  #follow(): void {
    this.#lookedAt = performance.now();
    const newest = this.#newest();
    if (newest > this.#now.number) this.#turn(newest);
  }

  /** What others still write to the last file is read until the next turn. */
  #turn(number: number): void {
    const isLeftBehind = number > this.#now.number + 1;
    this.#old?.watcher?.close();
    if (this.#old !== undefined) closeSync(this.#old.file);
    [this.#old, this.#now] = [this.#now, this.#open(number)];
    try {
      unlinkSync(this.#toPath(number - 2));
    } catch {}
    if (this.#listeners.isEmpty) return;
    this.#watch(this.#now);
    if (isLeftBehind) this.#listeners.gap();
    this.#read(this.#now);
  }
}

/**
 * Opens a file of the bus next to a database. Orders in it are obeyed, so only users that can write the
 * database may be able to write it. Check the owner: another user may have created the file first.
 */
function openBusFile(path: string, database: string): number {
  // Windows does not have this flag.
  const noFollow = (constants as Partial<typeof constants>).O_NOFOLLOW ?? 0;
  const file = openSync(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | noFollow, 0o600);
  if (fstatSync(file).uid !== statSync(database).uid) {
    closeSync(file);
    throw new Error(`file: ${path} belongs to another user, who could forge cancels with it; remove it`);
  }
  fchmodSync(file, 0o600);
  return file;
}

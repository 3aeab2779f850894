import { type Command, isStop } from './command.ts';
import { CommandStorage } from './command-storage.ts';
import { pause } from './pause.ts';

/** A command that the server has not acknowledged. */
export interface PendingCommand extends Pick<Command, 'id' | 'kind'> {
  /** `unauthenticated`: it is sent again when the user has logged in. */
  readonly state: 'sending' | 'waiting' | 'unauthenticated';
  /** A reload does not lose it. */
  readonly isKept: boolean;
}

/** How a command ended. */
export interface Settled {
  readonly command: Command;
  /** Why the server refused it, or that it was given up. */
  readonly error?: unknown;
}

interface Entry {
  readonly command: Command;
  readonly isKept: boolean;
  /** It was found when the page was loaded. */
  readonly isRestored: boolean;
  readonly acknowledged: PromiseWithResolvers<unknown>;
  state: PendingCommand['state'];
}

interface OutboxOptions {
  /** Where it is kept over a reload. */
  readonly name: string;
  /**
   * Sends a command. Resolves with the server's answer, and rejects if there was none or it is a refusal. With `keepalive`
   * the browser sends it even if the page is closed; then it holds the connection for 30 s, whoever aborts the request. One
   * that `isPatient` may take as long: a busy server answers late, and must not be asked again and again in vain.
   */
  readonly send: (command: Command, keepalive: boolean, isPatient: boolean) => Promise<unknown>;
  readonly onChange: () => void;
  readonly onSettled: (settled: Settled) => void;
}

const FIRST_WAIT_MS = 300;
const MAX_WAIT_MS = 15_000;
/** While somebody looks at the page. */
const MAX_VISIBLE_WAIT_MS = 5_000;
/** While a stop waits, or while somebody looks and no server answers. */
const MAX_SHORT_WAIT_MS = 1_000;
/** A stop without a response is sent once more, next to the request that waits: a lost packet is not reported. */
const SILENT_STOP_MS = 1_000;
/** How long any other request may wait alone, unless the network is back earlier. */
const SILENT_MS = 30_000;
/** Browsers give a page six connections. */
const MAX_OPEN_REQUESTS = 5;
/** The server may take it another time. */
const TEMPORARY: readonly number[] = [408, 425, 429];
const UNAUTHENTICATED = 401;
/** What a balancer says when no server is there. */
const AWAY: readonly (number | undefined)[] = [undefined, 502, 503, 504];

/**
 * The commands of a page, each sent until the server has acknowledged or refused it. Those of a chat are sent one after
 * the other, and stops before everything else. A reload continues with them.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #storage: CommandStorage;
  readonly #restored = new Set<string>();
  #entries: Entry[] = [];
  #wake = new AbortController();

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#storage = new CommandStorage(options.name);
    // A page that is closed sends its stops once more; the browser sends them even without the page.
    (globalThis as { window?: EventTarget }).window?.addEventListener('pagehide', () => {
      for (const { command } of this.#entries) if (isStop(command)) options.send(command, true, true).catch(() => {});
    });
  }

  /** Resolves with the server's answer. Rejects if the server refused the command, or with a `DOMException` if it was given up. */
  add(command: Command): Promise<unknown> {
    return this.#begin(command, { isKept: this.#storage.add(command), isRestored: false });
  }

  /** Continues with what the page had not finished when it was loaded again. */
  restore(chatId: string): void {
    if (this.#restored.has(chatId)) return;
    this.#restored.add(chatId);
    for (const command of this.#storage.read(chatId)) {
      const isKnown = this.#entries.some((entry) => entry.command.id === command.id);
      // No one waits for its answer any more.
      if (!isKnown) this.#begin(command, { isKept: true, isRestored: true }).catch(() => {});
    }
  }

  has(id: string): boolean {
    return this.#entries.some(({ command }) => command.id === id);
  }

  commands(chatId: string): readonly Command[] {
    return this.#of(chatId).map(({ command }) => command);
  }

  pending(chatId: string): readonly PendingCommand[] {
    return this.#of(chatId).map(({ command: { id, kind }, state, isKept }) => ({ id, kind, state, isKept }));
  }

  /** Resolves when reading may begin: a stop must be known to the server first. */
  async untilRead(chatId: string): Promise<void> {
    for (;;) {
      const before = this.#of(chatId).find(({ command, isRestored }) => isRestored || isStop(command));
      if (before === undefined) return;
      await settled(before);
    }
  }

  /** Sends everything that waits now. */
  retryNow(): void {
    this.#wake.abort();
    this.#wake = new AbortController();
  }

  /** Forgets a command. The server may have it. */
  giveUp(id: string): void {
    const entry = this.#entries.find(({ command }) => command.id === id);
    if (entry) this.#settle(entry, { error: new DOMException('It was given up', 'AbortError') });
  }

  #of(chatId: string): readonly Entry[] {
    return this.#entries.filter(({ command }) => command.chatId === chatId);
  }

  #begin(command: Command, about: Pick<Entry, 'isKept' | 'isRestored'>): Promise<unknown> {
    const entry: Entry = { command, ...about, acknowledged: Promise.withResolvers(), state: 'sending' };
    this.#entries = [...this.#entries, entry];
    this.#deliver(entry).catch((error: unknown) => this.#settle(entry, { error }));
    this.#options.onChange();
    return entry.acknowledged.promise;
  }

  async #deliver(entry: Entry): Promise<void> {
    const { command } = entry;
    const silentMs = command.kind === 'stop' ? SILENT_STOP_MS : SILENT_MS;
    const open = new Set<unknown>();
    let patient: unknown;
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = Math.min(2 * waitMs, MAX_WAIT_MS)) {
      for (let before = this.#before(entry); before; before = this.#before(entry)) await settled(before);
      if (!this.#entries.includes(entry)) return;
      this.#show(entry, 'sending');
      const isPatient = !open.has(patient);
      const request = this.#request(entry, waitMs === FIRST_WAIT_MS, isPatient).finally(() => open.delete(request));
      open.add(request);
      if (isPatient) patient = request;
      const answered = new AbortController();
      const error = await Promise.race([request, this.#waitLong(silentMs, answered.signal)]);
      answered.abort();
      if (open.size >= MAX_OPEN_REQUESTS) await Promise.race(open);
      if (error === undefined || !this.#entries.includes(entry)) continue;
      await pause(findPause(command, error, waitMs), this.#wake.signal);
    }
  }

  /** Waits while a request has no response. One that was sent just now is not repeated because the network is back. */
  async #waitLong(ms: number, answered: AbortSignal): Promise<undefined> {
    await pause(FIRST_WAIT_MS, answered);
    if (!answered.aborted) await pause(ms, this.#wake.signal, answered);
  }

  /** Sends a command once. If the server may take it another time, resolves with the error. */
  async #request(entry: Entry, isFirst: boolean, isPatient: boolean): Promise<unknown> {
    try {
      const answer = await this.#options.send(entry.command, isFirst && isStop(entry.command), isPatient);
      this.#settle(entry, { answer });
      this.retryNow();
    } catch (error) {
      if (isTemporary(error)) {
        this.#show(entry, getStatus(error) === UNAUTHENTICATED ? 'unauthenticated' : 'waiting');
        return error;
      }
      this.#settle(entry, { error });
    }
    return undefined;
  }

  /** Returns what has to be sent first. */
  #before(entry: Entry): Entry | undefined {
    if (isStop(entry.command) || !this.#entries.includes(entry)) return undefined;
    const others = this.#of(entry.command.chatId);
    return others.find(({ command }) => isStop(command)) ?? others.slice(0, others.indexOf(entry)).at(-1);
  }

  #show(entry: Entry, state: Entry['state']): void {
    if (entry.state === state) return;
    entry.state = state;
    this.#options.onChange();
  }

  #settle(entry: Entry, end: { readonly answer: unknown } | { readonly error: unknown }): void {
    const { command, acknowledged } = entry;
    const isGone = !this.#entries.includes(entry);
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#storage.remove(command);
    if ('error' in end) acknowledged.reject(end.error);
    else acknowledged.resolve(end.answer);
    if (isGone) return;
    this.#options.onChange();
    this.#options.onSettled({ command, ...('error' in end && end) });
  }
}

const settled = ({ acknowledged }: Entry): Promise<unknown> => acknowledged.promise.catch(() => {});

const getStatus = (error: unknown): number | undefined => (error as { statusCode?: number } | undefined)?.statusCode;

/** Returns how long to wait before a command is sent again: at most `waitMs`, unless the server asks for more. */
function findPause(command: Command, error: unknown, waitMs: number): number {
  const isHidden = (globalThis as { document?: { hidden?: boolean } }).document?.hidden;
  if (isStop(command)) return Math.min(waitMs, MAX_SHORT_WAIT_MS);
  const maxMs = AWAY.includes(getStatus(error)) ? MAX_SHORT_WAIT_MS : MAX_VISIBLE_WAIT_MS;
  const { retryAfterMs = 0 } = error as { retryAfterMs?: number };
  // A pause is at least half as long.
  return Math.max(Math.min(waitMs, isHidden ? MAX_WAIT_MS : maxMs), 2 * Math.min(retryAfterMs, MAX_WAIT_MS));
}

/** When the network fails, or takes too long, nothing is known about the server. */
function isTemporary(error: unknown): boolean {
  const status = getStatus(error);
  if (status === undefined) return error instanceof TypeError || error instanceof DOMException;
  return status >= 500 || status === UNAUTHENTICATED || TEMPORARY.includes(status);
}

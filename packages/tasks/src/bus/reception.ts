import type { Clock } from '@whoa/core/embed';
import { Listeners } from './bus.ts';
import { adviceOnCertificate } from './untrusted.ts';

/** A connection to a server that listens to this process's inbox. */
export interface Listening {
  /** Rejects if the server does not respond. */
  check(): Promise<unknown>;
  /** Ends it, within a limit. */
  close(): Promise<void> | void;
}

interface ReceptionOptions {
  /** Resolves once the connection listens. */
  readonly connect: (onLost: () => void) => Promise<Listening>;
  readonly clock: Clock;
  /** A silent connection is checked this often, and must respond within this time. */
  readonly checkMs: number;
}

/** The pause before a lost connection is opened again. It doubles each time. */
const RETRY_DELAY_MS = 20;
const MAX_RETRY_MS = 1_000;
/** The pause after an error that only an operator can fix. */
const SETUP_RETRY_MS = 60_000;

/** The receiving half of a bus with a server: connected while there are listeners, and again after every loss. */
export class Reception extends Listeners {
  readonly #options: ReceptionOptions;
  #listening: PromiseWithResolvers<void> | undefined;
  #current: Listening | undefined;
  #timer: Disposable | undefined;
  #hasHeard = false;
  #hasMissed = false;
  #failures = 0;
  #hasWarned = false;
  /** What is in progress, and never rejects. */
  #connecting: Promise<void> | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: ReceptionOptions) {
    super();
    this.#options = options;
  }

  async receive(listener: (message: Uint8Array) => void): Promise<Disposable> {
    const receiving = this.add(listener, () => this.#stop());
    if (this.#listening === undefined) {
      this.#listening = Promise.withResolvers();
      this.#connecting = this.#connect(this.#listening);
    }
    await this.#listening.promise;
    return receiving;
  }

  override deliver(message: Uint8Array): void {
    this.#hasHeard = true;
    super.deliver(message);
  }

  /** Resolves when the connection is closed. */
  async close(): Promise<void> {
    this.#stop();
    await this.#connecting;
    await this.#closing;
  }

  #stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#listening = undefined;
    this.#leave();
  }

  #leave(): void {
    if (this.#current === undefined) return;
    this.#closing = Promise.resolve(this.#current.close()).catch(() => {});
    this.#current = undefined;
  }

  async #connect(listening: PromiseWithResolvers<void>): Promise<void> {
    let open: Listening | undefined;
    let isLost = false;
    const onLost = (): void => {
      isLost = true;
      if (this.#listening !== listening || this.#current !== open) return;
      this.#current = undefined;
      this.#connectIn(Math.min(RETRY_DELAY_MS * 2 ** this.#failures++, MAX_RETRY_MS), listening);
    };
    try {
      open = await this.#options.connect(onLost);
    } catch (error) {
      if (this.#listening !== listening) return;
      const isSetUp = (error as { code?: string }).code !== 'STORE_SETUP';
      const advice = adviceOnCertificate(error);
      if (!isSetUp || advice !== undefined) this.#warn(error as Error, advice);
      const retryMs = Math.min(RETRY_DELAY_MS * 2 ** this.#failures++, MAX_RETRY_MS);
      return this.#connectIn(isSetUp ? retryMs : SETUP_RETRY_MS, listening);
    }
    if (this.#listening !== listening) return open.close();
    if (isLost) return onLost();
    this.#current = open;
    this.#failures = 0;
    this.#checkLater(open);
    listening.resolve();
    if (this.#hasMissed) this.gap();
    this.#hasMissed = false;
  }

  #connectIn(ms: number, listening: PromiseWithResolvers<void>): void {
    this.#hasMissed = true;
    this.#startTimer(ms, () => (this.#connecting = this.#connect(listening)));
  }

  #checkLater(open: Listening): void {
    const { checkMs } = this.#options;
    this.#hasHeard = false;
    this.#startTimer(checkMs, () => {
      if (this.#hasHeard) return this.#checkLater(open);
      const leave = (): void => {
        if (this.#current !== open) return;
        this.#leave();
        this.#connectIn(0, this.#listening!);
      };
      // Don't wait for the library's timeout: a cancel in the meantime would be missed.
      this.#startTimer(checkMs, leave);
      open.check().then(() => this.#current === open && this.#checkLater(open), leave);
    });
  }

  #startTimer(ms: number, work: () => unknown): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = this.#options.clock.setTimer(ms, work, { keepAlive: false });
  }

  #warn(cause: Error, advice = ''): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const warning = new Error('The bus cannot be used, so changes are found late, by polling', { cause });
    process.emitWarning(Object.assign(warning, { detail: `${cause.message}${advice && `; ${advice}`}` }));
  }
}

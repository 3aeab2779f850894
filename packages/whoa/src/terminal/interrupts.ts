import { userInfo } from 'node:os';
import type { CancellationToken, CancelReasonInit, StopLevel, StopMode } from '@whoa/core';
import { type Clock, systemClock } from '@whoa/core/embed';
import { CLEANUP_MS } from '@whoa/core/internal';
import { EXIT, type Use } from '../command.ts';

/** How long the Ctrl-C that kills waits before it exits. The watchdog ends processes that are left. */
const EXIT_MS = CLEANUP_MS + 1_000;

const LEVELS: readonly StopLevel[] = ['drain', 'abort', 'kill'];

export interface InterruptOptions {
  readonly token: CancellationToken;
  /** Ends the process. Called when even `kill` did not settle the run. */
  readonly exit: () => void;
  /** The mode of the first Ctrl-C. Defaults to `now`, as for the stop button of a page. */
  readonly first?: StopMode | undefined;
  /** The current stop level of the run. Another process may have started the stop. */
  readonly level?: () => StopLevel | undefined;
  /** Called when the last wait starts, after which the process exits. */
  readonly onLastWait?: (ms: number) => void;
  readonly clock?: Clock;
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Turns signals of the terminal into cancels: Ctrl-C once stops what need not finish now, twice kills and exits, a third time
 * exits immediately. Each goes beyond the current level of the run. SIGHUP and SIGTERM mean now: no other process would take
 * the run over.
 */
export function listenForInterrupts(options: InterruptOptions): Disposable {
  const { token, exit, first = 'now', clock = systemClock, signals = process } = options;
  const reached = (): StopLevel | undefined => {
    const reported = options.level?.();
    return LEVELS.findLast((level) => level === reported || level === token.level);
  };
  let exitTimer: Disposable | undefined;
  const onInterrupt = (): void => {
    if (exitTimer !== undefined) {
      exit();
      return;
    }
    const level = reached();
    const mode = level === undefined ? first : level === 'drain' ? 'now' : 'kill';
    token.cancel({ kind: 'user', by: userName(), via: 'Ctrl-C' }, { mode });
    if (token.level !== 'kill') return;
    exitTimer = clock.setTimer(EXIT_MS, exit);
    options.onLastWait?.(EXIT_MS);
  };
  const onTerminate = (): void => {
    token.cancel({ kind: 'shutdown', via: 'SIGTERM' }, { mode: 'now' });
  };
  const onHangUp = (): void => {
    token.cancel({ kind: 'disconnect', message: 'the terminal was closed', via: 'SIGHUP' }, { mode: 'now' });
  };
  const listening = listen({ SIGINT: onInterrupt, SIGTERM: onTerminate, SIGHUP: onHangUp }, signals);
  return {
    [Symbol.dispose]() {
      listening[Symbol.dispose]();
      exitTimer?.[Symbol.dispose]();
    },
  };
}

type Handlers = Readonly<Record<'SIGINT' | 'SIGTERM' | 'SIGHUP', (signal: NodeJS.Signals) => void>>;

function listen(handlers: Handlers, signals: Pick<NodeJS.Process, 'on' | 'off'>): Disposable {
  const all = Object.entries(handlers) as [NodeJS.Signals, Handlers['SIGINT']][];
  for (const [signal, handler] of all) signals.on(signal, handler);
  return {
    [Symbol.dispose]() {
      for (const [signal, handler] of all) signals.off(signal, handler);
    },
  };
}

/** Calls `end` on SIGINT, SIGTERM and SIGHUP, for commands without a user at the terminal. */
export function listenForEnd(
  end: (reason: CancelReasonInit) => unknown,
  signals: Pick<NodeJS.Process, 'on' | 'off'> = process,
): Disposable {
  const handler = (signal: NodeJS.Signals): void => {
    end({ kind: 'shutdown', via: signal });
  };
  return listen({ SIGINT: handler, SIGTERM: handler, SIGHUP: handler }, signals);
}

/** Waits until an editor has closed its connection, or a signal has. Returns the exit code. */
export async function waitForClose(
  connection: { close(reason: CancelReasonInit): unknown; readonly closed: Promise<{ readonly error?: Error }> },
  own: Use,
): Promise<number> {
  own(listenForEnd((reason) => connection.close(reason)));
  const { error } = await connection.closed;
  if (error !== undefined) throw error;
  return EXIT.success;
}

/** Resolves on the first signal; a second one exits immediately. Call it before opening resources that need cleanup. */
export function waitForEnd(own: Use): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let isEnding = false;
  own(
    listenForEnd(() => {
      if (isEnding) process.exit(EXIT.cancelled);
      isEnding = true;
      resolve();
    }),
  );
  return promise;
}

/** The name of the user, for cancel reasons. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container the user may have no name.
    return String(process.getuid?.() ?? 'somebody');
  }
}

import { userInfo } from 'node:os';
import type { CancellationToken, CancelReasonInit, StopLevel, StopMode } from '@whoa/core';
import { type Clock, systemClock } from '@whoa/core/embed';
import { CLEANUP_MS } from '@whoa/core/internal';
import { EXIT, type Own } from '../command.ts';

/** After the third Ctrl-C whatever has not ended by then is left to its watchdog. */
const EXIT_MS = CLEANUP_MS + 1_000;

const LEVELS: readonly StopLevel[] = ['drain', 'abort', 'kill'];

export interface InterruptOptions {
  readonly token: CancellationToken;
  /** Ends the process: asked for when even `kill` did not settle the run. */
  readonly exit: () => void;
  /** What the first Ctrl-C means; `graceful` unless given. */
  readonly first?: StopMode;
  /** How hard the run is stopped by now: somebody elsewhere may have begun. */
  readonly level?: () => StopLevel | undefined;
  /** Told when the last wait begins, after which the process exits. */
  readonly onLastWait?: (ms: number) => void;
  readonly clock?: Clock;
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}

/**
 * Turns what a terminal sends into cancels: Ctrl-C once is graceful, twice now, three times kill and exit, a fourth time
 * exit at once. It always goes one level further than the run is stopped by now. A terminal that goes, or a machine that
 * shuts down, means now: nobody else would take the run over.
 */
export function listenForInterrupts(options: InterruptOptions): Disposable {
  const { token, exit, first = 'graceful', clock = systemClock, signals = process } = options;
  const reached = (): StopLevel | undefined => {
    const told = options.level?.();
    return LEVELS.findLast((level) => level === told || level === token.level);
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
    token.cancel({ kind: 'disconnect', message: 'the terminal has gone', via: 'SIGHUP' }, { mode: 'now' });
  };
  const handlers = [
    ['SIGINT', onInterrupt],
    ['SIGTERM', onTerminate],
    ['SIGHUP', onHangUp],
  ] as const;
  for (const [signal, handler] of handlers) signals.on(signal, handler);
  return {
    [Symbol.dispose]() {
      for (const [signal, handler] of handlers) signals.off(signal, handler);
      exitTimer?.[Symbol.dispose]();
    },
  };
}

/** For commands that nobody sits at: any of these signals ends them. */
export function listenForEnd(
  end: (reason: CancelReasonInit) => unknown,
  signals: Pick<NodeJS.Process, 'on' | 'off'> = process,
): Disposable {
  const handler = (signal: NodeJS.Signals): void => {
    end({ kind: 'shutdown', via: signal });
  };
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) signals.on(name, handler);
  return {
    [Symbol.dispose]() {
      for (const name of names) signals.off(name, handler);
    },
  };
}

/** Resolves with the first signal to end; a second one ends the process at once. Own it before what is to end in order. */
export function waitForEnd(own: Own): Promise<void> {
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

/** Who sits here, for reasons. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user that has no name.
    return String(process.getuid?.() ?? 'somebody');
  }
}

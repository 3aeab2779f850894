import { EXIT, type Use } from '../command.ts';
import { listenForEnd } from '../terminal/interrupts.ts';

type State = 'starting' | 'serving' | 'draining' | 'closing';

export interface DrainOptions {
  readonly drainMs: number;
  /** Called when the drain starts. */
  readonly onDrain: () => void;
  readonly signals?: Pick<NodeJS.Process, 'on' | 'off'>;
}

/** How a server ends. */
export interface Drain {
  /** Whether requests should go to other servers. */
  readonly isDraining: () => boolean;
  /** Call it when the server listens. Resolves when the server must close. */
  readonly untilClosing: () => Promise<void>;
}

/**
 * Keeps a server open for `drainMs` after SIGTERM, so that load balancers see that it is not ready and send requests
 * elsewhere before it closes. Another signal ends the wait; the one after it exits immediately. Ctrl-C does not wait.
 */
export function listenForDrain(own: Use, { drainMs, onDrain, signals }: DrainOptions): Drain {
  let state: State = 'starting';
  const { promise, resolve } = Promise.withResolvers<void>();
  const close = (): void => {
    state = 'closing';
    resolve();
  };
  own(
    listenForEnd(({ via }) => {
      if (state === 'closing') process.exit(EXIT.cancelled);
      if (state !== 'serving' || via !== 'SIGTERM' || drainMs === 0) {
        close();
        return;
      }
      state = 'draining';
      setTimeout(close, drainMs).unref();
      onDrain();
    }, signals),
  );
  return {
    isDraining: () => state === 'draining' || state === 'closing',
    untilClosing() {
      if (state === 'starting') state = 'serving';
      return promise;
    },
  };
}

import { type Agent, CancellationToken } from '@whoa/core';
import { type Cleanup, waitUnder } from '@whoa/core/embed';
import { CLEANUP_MS } from '@whoa/core/internal';

/** An agent, and what it holds open. Closing it is bounded, and one cleanup that fails does not keep the next. */
export class AgentSlot {
  readonly token: CancellationToken;
  readonly #cleanups: Cleanup[] = [];
  readonly #onProblem: (error: unknown) => void;
  #agent: Promise<Agent> | undefined;

  constructor(parent: CancellationToken, onProblem: (error: unknown) => void) {
    this.token = new CancellationToken({ parent, name: 'agent' });
    this.#onProblem = onProblem;
  }

  defer(cleanup: Cleanup): void {
    this.#cleanups.push(cleanup);
  }

  open(create: () => Agent | Promise<Agent>): Promise<Agent> {
    this.#agent ??= Promise.resolve().then(create);
    return this.#agent;
  }

  async close(): Promise<void> {
    this.token.cancel({ kind: 'shutdown', message: 'the agent is no longer needed' }, { how: 'now' });
    // Without a parent: this is the cleanup after the cancel.
    const bound = new CancellationToken({ name: 'cleanup', clock: this.token.clock });
    bound.cancelAfter(CLEANUP_MS, { kind: 'deadline' }, { how: 'kill' });
    if (this.#agent !== undefined) await waitUnder(this.#agent, bound, 'kill');
    for (const cleanup of this.#cleanups.splice(0).reverse()) {
      const end = await waitUnder(
        Promise.resolve().then(() => cleanup({ signal: bound.signal })),
        bound,
        'kill',
      );
      if (end.by === 'error') this.#onProblem(end.error);
      if (end.by === 'level') this.#onProblem(new Error(`A cleanup of an agent took longer than ${CLEANUP_MS} ms`));
    }
    bound[Symbol.dispose]();
    this.token[Symbol.dispose]();
  }
}

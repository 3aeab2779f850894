import { type Agent, CancellationToken } from '@whoa/core';
import { CLEANUP_MS, type CleanupList, createCleanupList, waitAtMost } from '@whoa/core/internal';

/** An agent, and its open resources. Closing it has a time limit. */
export class AgentSlot {
  readonly token: CancellationToken;
  readonly defer: CleanupList['defer'];
  readonly #cleanups: CleanupList;
  #agent: Promise<Agent> | undefined;

  constructor(parent: CancellationToken, onError: (error: unknown) => void) {
    this.token = new CancellationToken({ parent, name: 'agent' });
    this.#cleanups = createCleanupList({ name: 'the agent', clock: this.token.clock, onError });
    this.defer = this.#cleanups.defer;
  }

  open(create: () => Agent | Promise<Agent>): Promise<Agent> {
    this.#agent ??= Promise.resolve().then(create);
    return this.#agent;
  }

  async close(): Promise<void> {
    this.token.cancel({ kind: 'shutdown', message: 'the agent is no longer needed' }, { mode: 'now' });
    const opening = this.#agent;
    // Its cleanups are only complete once it is open.
    if (opening !== undefined) await waitAtMost(opening, CLEANUP_MS, this.token.clock).catch(() => {});
    await this.#cleanups[Symbol.asyncDispose]();
    this.token[Symbol.dispose]();
  }
}

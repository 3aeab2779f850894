import { CancellationToken, type Tool } from '@whoa/core';
import { type RunningCall, startSlowTrial, startTrial } from './running-call.ts';
import type { ToolContractCaseId, ToolUnderTest } from './subject.ts';

/** One case of the contract. */
export interface CaseDefinition {
  readonly id: ToolContractCaseId;
  readonly name: string;
  readonly check: (subject: ToolUnderTest, stage: Stage) => Promise<void>;
}

/** The resources of one case. They are disposed with it. */
export class Stage implements Disposable {
  /** The longest a tool may take to stop after an abort. */
  readonly timeoutMs: number;
  readonly #owned: Disposable[] = [];

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  token(name: string): CancellationToken {
    return this.#own(new CancellationToken({ name }));
  }

  start(tool: Tool, input: unknown, parent?: CancellationToken): RunningCall {
    return this.#own(startTrial(tool, input, parent));
  }

  async startSlow(subject: ToolUnderTest, tool?: Tool, parent?: CancellationToken): Promise<RunningCall> {
    return this.#own(await startSlowTrial(subject, tool, parent));
  }

  [Symbol.dispose](): void {
    for (const thing of this.#owned.splice(0).reverse()) thing[Symbol.dispose]();
  }

  #own<Thing extends Disposable>(thing: Thing): Thing {
    this.#owned.push(thing);
    return thing;
  }
}

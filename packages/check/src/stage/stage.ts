import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Answer, type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { startWitness, type Witness } from '../witness/witness.ts';
import { type Action, answerTo, directiveIn } from './script.ts';
import { findWitnessTool, type WitnessTool } from './shell-tool.ts';

/** A request of the agent to its model. */
type ModelRequest = LoopbackProvider['requests'][number];

/** What surrounds an agent: its model, the witness, and a folder. */
export interface Stage extends AsyncDisposable {
  /** The base URL of the model, ending in `/v1`. */
  readonly provider: string;
  readonly witness: Witness;
  /** An empty folder in which the agent works. */
  readonly folder: string;
  /** How many requests the model got. */
  readonly requestCount: number;
  /** The tool that the agent offers to its model and that can start the witness. */
  readonly tool: WitnessTool | undefined;
  makeKey(): string;
  /** The requests that a prompt led to, apart from those for a title or the like. */
  requestsFor(key: string): readonly ModelRequest[];
  /** Resolves with the request of that index, once it has arrived. */
  waitForRequest(key: string, index?: number): Promise<ModelRequest>;
}

/**
 * Starts a model and a witness. `port` is where the model listens; by default a free one.
 *
 * @returns The running stage. Dispose it to stop both.
 */
export async function createStage({ port = 0 }: { readonly port?: number } = {}): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-check-'));
  const witness = await startWitness(folder);
  const model = new ScriptedModel(witness);
  const provider = await startLoopbackProvider({ script: (request) => model.answer(request), port });
  return {
    provider: provider.url,
    witness,
    folder,
    get requestCount() {
      return provider.requests.length;
    },
    get tool() {
      return model.tool;
    },
    makeKey: () => randomBytes(4).toString('hex'),
    requestsFor: (key) => model.requestsFor(key),
    waitForRequest: (key, index = 0) => model.waitForRequest(key, index),
    async [Symbol.asyncDispose]() {
      await Promise.all([provider.close(), witness[Symbol.asyncDispose]()]);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}

class ScriptedModel {
  tool: WitnessTool | undefined;
  readonly #witness: Witness;
  readonly #requests = new Map<string, ModelRequest[]>();
  readonly #waiting = new Set<() => void>();

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  requestsFor(key: string): readonly ModelRequest[] {
    return this.#requests.get(key) ?? [];
  }

  async waitForRequest(key: string, index: number): Promise<ModelRequest> {
    for (;;) {
      const there = this.#requests.get(key)?.[index];
      if (there !== undefined) return there;
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  answer(request: ModelRequest): Answer {
    const tool = findWitnessTool(request.body);
    const directive = directiveIn(JSON.stringify(request.body));
    // Agents also ask beside a turn, with fewer tools or none: for a title, a summary, what to suggest next.
    if (directive === undefined || (tool === undefined && this.tool !== undefined))
      return { parts: [{ text: 'Check' }] };
    this.tool = tool;
    return this.#answerTurn(directive, request);
  }

  #answerTurn({ key, action }: { key: string; action: Action }, request: ModelRequest): Answer {
    const requests = this.#requests.get(key) ?? [];
    this.#requests.set(key, requests);
    const step = requests.push(request) - 1;
    const { tool } = this;
    const answer = answerTo(action, {
      key,
      step,
      call: (callKey, mode) => {
        const command = this.#witness.command(callKey, mode);
        const name = tool?.name ?? 'bash';
        return { call: name, input: tool?.inputFor({ key: callKey, mode, command }) ?? { command } };
      },
    });
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    return answer;
  }
}

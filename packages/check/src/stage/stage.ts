import { randomBytes } from 'node:crypto';
import type { Answer, LoopbackProvider } from '@whoa/ai-sdk/testing';
import type { Probe } from '../witness/witness.ts';
import { startHarness } from './harness.ts';
import { answerTo, type CallWitness, directiveIn } from './script.ts';
import { findWitnessTool, type WitnessTool } from './shell-tool.ts';

/** A request of the agent to its model. */
type ModelRequest = LoopbackProvider['requests'][number];

/** What surrounds an agent: its model, the witness, and a folder. */
export interface CheckHarness extends AsyncDisposable {
  /** The base URL of the model, ending in `/v1`. */
  readonly provider: string;
  readonly witness: Probe;
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
export async function createCheckHarness({ port = 0 }: { readonly port?: number } = {}): Promise<CheckHarness> {
  const model = new ScriptedModel();
  const harness = await startHarness((witness) => (request) => model.answer(request, witness), port);
  const { provider, witness, folder } = harness;
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
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  };
}

class ScriptedModel {
  tool: WitnessTool | undefined;
  readonly #requests = new Map<string, ModelRequest[]>();
  readonly #waiting = new Set<() => void>();

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

  answer(request: ModelRequest, witness: Probe): Answer {
    const tool = findWitnessTool(request.body);
    const directive = directiveIn(JSON.stringify(request.body));
    // Agents also ask beside a turn, with fewer tools or none: for a title, a summary, what to suggest next.
    if (directive === undefined || (tool === undefined && this.tool !== undefined))
      return { parts: [{ text: 'Check' }] };
    this.tool = tool;
    const { key, action } = directive;
    const requests = this.#requests.get(key) ?? [];
    this.#requests.set(key, requests);
    const step = requests.push(request) - 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    const call: CallWitness = (callKey, mode) => {
      const command = witness.command(callKey, mode);
      return { call: tool?.name ?? 'bash', input: tool?.inputFor({ key: callKey, mode, command }) ?? { command } };
    };
    return answerTo(action, { key, step, call });
  }
}

import { randomBytes } from 'node:crypto';
import type { LoopbackProvider, ScriptedResponse } from '@whoa/ai-sdk/testing';
import type { Probe } from '../probe/probe.ts';
import { startHarness } from './harness.ts';
import { answerTo, type CallProbe, parseDirective } from './script.ts';
import { findProbeTool, type ProbeTool } from './shell-tool.ts';

/** A request of the agent to its model. */
type ModelRequest = LoopbackProvider['requests'][number];

/** What surrounds an agent: its model, the probe, and a folder. */
export interface CheckHarness extends AsyncDisposable {
  /** The base URL of the model, ending in `/v1`. */
  readonly provider: string;
  readonly probe: Probe;
  /** An empty folder in which the agent works. */
  readonly folder: string;
  /** How many requests the model got. */
  readonly requestCount: number;
  /** The tool that the agent offers to its model and that can start the probe. */
  readonly tool: ProbeTool | undefined;
  /** Creates a key that identifies one prompt in requests and effects. */
  makeKey(): string;
  /** The requests that a prompt led to, apart from those for a title or the like. */
  requestsFor(key: string): readonly ModelRequest[];
  /** Resolves with the request of that index, once it has arrived. */
  waitForRequest(key: string, index?: number): Promise<ModelRequest>;
}

/**
 * Starts a model and a probe. `port` is where the model listens; by default a free one.
 *
 * @returns The running harness. Dispose it to stop both.
 */
export async function createCheckHarness({ port = 0 }: { readonly port?: number } = {}): Promise<CheckHarness> {
  const model = new ScriptedModel();
  const harness = await startHarness((probe) => (request) => model.answer(request, probe), port);
  const { provider, probe, folder } = harness;
  return {
    provider: provider.url,
    probe,
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
  tool: ProbeTool | undefined;
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

  answer(request: ModelRequest, probe: Probe): ScriptedResponse {
    const tool = findProbeTool(request.body);
    const directive = parseDirective(JSON.stringify(request.body));
    // Agents also ask outside a turn, with fewer tools or none: for a title, a summary, what to suggest next.
    if (directive === undefined || (tool === undefined && this.tool !== undefined))
      return { parts: [{ text: 'Check' }] };
    this.tool = tool;
    const { key, action } = directive;
    const requests = this.#requests.get(key) ?? [];
    this.#requests.set(key, requests);
    const step = requests.push(request) - 1;
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
    const call: CallProbe = (callKey, mode) => {
      const command = probe.command(callKey, mode);
      return { call: tool?.name ?? 'bash', input: tool?.inputFor({ key: callKey, mode, command }) ?? { command } };
    };
    return answerTo(action, { key, step, call });
  }
}

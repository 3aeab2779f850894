import { randomBytes } from 'node:crypto';
import type { LoopbackProvider, ScriptedResponse } from '@whoa/ai-sdk/testing';
import type { Probe } from '../probe/probe.ts';
import { startHarness } from './harness.ts';
import { answerTo, type CallProbe, type Directive, parseDirective } from './script.ts';
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
  /** The requests that a prompt led to, also those that the model refused; not those for a title or the like. */
  requestsFor(key: string): readonly ModelRequest[];
  /** Resolves with the request of that index among those that the model accepted, once it has arrived. */
  waitForRequest(key: string, index?: number): Promise<ModelRequest>;
}

/**
 * Starts a model and a probe. `port` is where the model listens; by default a free one.
 *
 * @returns The running harness. Dispose it to stop both.
 */
export async function createCheckHarness({
  port = 0,
}: {
  readonly port?: number | undefined;
} = {}): Promise<CheckHarness> {
  let tool: ProbeTool | undefined;
  const directives = new Map<ModelRequest, Directive | undefined>();
  const read = (request: ModelRequest): Directive | undefined => {
    if (directives.has(request)) return directives.get(request);
    const own = findProbeTool(request.body);
    // Agents also ask outside a turn, with fewer tools or none: for a title, a summary, what to suggest next.
    const isAside = own === undefined && tool !== undefined;
    const directive = isAside ? undefined : parseDirective(JSON.stringify(request.body));
    if (directive !== undefined) tool = own;
    directives.set(request, directive);
    return directive;
  };
  const harness = await startHarness(() => (request) => answer(request), port);
  const { provider, probe, folder } = harness;
  const requestsFor = (key: string): readonly ModelRequest[] =>
    provider.requests.filter((request) => read(request)?.key === key);
  const acceptedFor = (key: string): readonly ModelRequest[] =>
    requestsFor(key).filter(({ refusal }) => refusal === undefined);
  const answer = (request: ModelRequest): ScriptedResponse => {
    const directive = read(request);
    if (directive === undefined) return { parts: [{ text: 'Check' }] };
    const { key, action } = directive;
    const call: CallProbe = (callKey, mode) => {
      const command = probe.command(callKey, mode);
      return { call: tool?.name ?? 'bash', input: tool?.inputFor({ key: callKey, mode, command }) ?? { command } };
    };
    return answerTo(action, { key, step: acceptedFor(key).indexOf(request), call });
  };
  return {
    provider: provider.url,
    probe,
    folder,
    get requestCount() {
      return provider.requests.length;
    },
    get tool() {
      return tool;
    },
    makeKey: () => randomBytes(4).toString('hex'),
    requestsFor,
    async waitForRequest(key, index = 0) {
      for (let arrived = provider.requests.length; ; arrived++) {
        const there = acceptedFor(key)[index];
        if (there !== undefined) return there;
        await provider.waitForRequest(arrived);
      }
    },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  };
}

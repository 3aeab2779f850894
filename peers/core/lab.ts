import type { LoopbackProvider, ScriptedResponse } from '@whoa/ai-sdk/testing';
import { until, within } from '../../packages/check/src/clock.ts';
import { type Harness, startHarness } from '../../packages/check/src/harness/harness.ts';
import type { Probe } from '../../packages/check/src/probe/probe.ts';
import { SOON_MS, START_MS, WAIT_MS } from './bounds.ts';
import type { Ending, OpenOptions, Peer, PeerAgent, PeerRun, PeerTool, StartOptions, Wire } from './peer.ts';
import { PeerTools } from './tools.ts';

export interface FixtureOptions {
  /** The model's responses, request by request; afterwards it replies OK. */
  readonly answers: readonly ScriptedResponse[] | ((probe: Probe) => readonly ScriptedResponse[]);
  readonly tools?: (tools: PeerTools, probe: Probe) => readonly PeerTool[];
  readonly wire?: Wire;
  readonly open?: Partial<OpenOptions>;
}

/** The place where one scenario runs with one library. Everything in it ends with it. */
export class Lab implements AsyncDisposable {
  readonly peer: Peer;
  readonly module: string;
  readonly #fixtures: Fixture[] = [];

  /** `module` is the file of the adapter, for processes that must load it again. */
  constructor(peer: Peer, module: string) {
    this.peer = peer;
    this.module = module;
  }

  /** Opens an agent on a provider that follows a script. */
  async open({ answers, tools = () => [], wire = this.peer.wires[0]!, open }: FixtureOptions): Promise<Fixture> {
    const harness = await startHarness((probe) => {
      const list = typeof answers === 'function' ? answers(probe) : answers;
      let said = 0;
      return () => list[said++] ?? { parts: [{ text: 'OK' }] };
    });
    const { provider, probe } = harness;
    const own = tools(new PeerTools(probe.port), probe);
    const fixture = new Fixture(harness, await this.peer.open({ url: provider.url, wire, tools: own, ...open }));
    this.#fixtures.push(fixture);
    return fixture;
  }

  /** Opens an agent and starts a run. */
  async begin(options: FixtureOptions): Promise<Fixture> {
    const fixture = await this.open(options);
    fixture.start('Begin');
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const fixture of this.#fixtures) await fixture[Symbol.asyncDispose]();
  }
}

export interface Settled {
  readonly ending: Ending;
  /** Milliseconds from the first cancel to the end. */
  readonly afterMs: number;
}

/** One agent, its provider and its probe. */
export class Fixture implements AsyncDisposable {
  readonly provider: LoopbackProvider;
  readonly probe: Probe;
  readonly agent: PeerAgent;
  run!: PeerRun;
  readonly #harness: Harness;
  #endedAt: number | undefined;
  cancelledAt = 0;

  constructor(harness: Harness, agent: PeerAgent) {
    this.provider = harness.provider;
    this.probe = harness.probe;
    this.#harness = harness;
    this.agent = agent;
  }

  start(input: string, options: StartOptions = {}): PeerRun {
    this.#endedAt = undefined;
    const run = this.agent.start(input, options);
    this.run = run;
    const note = (): void => {
      if (this.run === run) this.#endedAt = performance.now();
    };
    run.ended.then(note, note);
    return run;
  }

  get isEnded(): boolean {
    return this.#endedAt !== undefined;
  }

  /** Waits until a reader of the run has seen this text. */
  async sees(text: string): Promise<void> {
    if (await until(WAIT_MS, () => this.run.text().includes(text))) return;
    throw new NotReached(`the reader never saw "${text}", only "${this.run.text()}"`);
  }

  /** Waits until a tool has started; with `tree`, all processes of a command. */
  async starts(tool: string, mode: 'plain' | 'tree' = 'plain'): Promise<void> {
    if (await within(START_MS, this.probe.waitForStart(tool, mode))) return;
    throw new NotReached(`the tool ${tool} never started`);
  }

  /** Waits until a tool has done its work. Returns whether it has. */
  finishes(tool: string): Promise<boolean> {
    return until(WAIT_MS, () => this.probe.hasFinished(tool));
  }

  cancel(reason = 'the user asked'): void {
    this.cancelledAt ||= performance.now();
    this.run.cancel(reason);
  }

  /** Waits for the end of the run, or returns undefined. */
  async settle(ms: number = WAIT_MS): Promise<Settled | undefined> {
    const { ended } = this.run;
    if (!(await within(ms, ended))) return undefined;
    return { ending: await ended, afterMs: Math.round((this.#endedAt ?? performance.now()) - this.cancelledAt) };
  }

  /** Cancels and waits for the end, which must come. */
  async stop(reason?: string, ms?: number): Promise<Settled> {
    this.cancel(reason);
    const settled = await this.settle(ms);
    if (settled === undefined) throw new NotSettled();
    return settled;
  }

  /** Runs the next turn with the history that the library returns, and returns the provider's first request. */
  async next(session: unknown): Promise<{ request: LoopbackProvider['requests'][number] | undefined; ending: Ending }> {
    const before = this.provider.requests.length;
    const starts = this.probe.countStarts();
    const { ended } = this.start('Go on', { session });
    if (!(await within(WAIT_MS, ended))) {
      const again = this.probe.countStarts() > starts ? 'started the stopped call again, and ' : '';
      throw new Error(`the next turn ${again}did not end`);
    }
    return { request: this.provider.requests[before], ending: await ended };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await within(SOON_MS, Promise.resolve(this.agent.close?.()));
    await this.#harness[Symbol.asyncDispose]();
  }
}

/** The run did not end after its cancel. */
export class NotSettled extends Error {
  constructor() {
    super(`the run was not over ${WAIT_MS / 1000} s after the cancel`);
  }
}

/** The moment of the cancel was never reached. */
export class NotReached extends Error {}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Answer, type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { SOON_MS, WAIT_MS } from './bounds.ts';
import { now, until, within } from './clock.ts';
import type { Ending, OpenOptions, Peer, PeerAgent, PeerRun, PeerTool, StartOptions, Wire } from './peer.ts';
import { Witness } from './witness.ts';

export interface FixtureOptions {
  /** What the model says, request by request; afterwards it says OK. */
  readonly answers: readonly Answer[];
  readonly tools?: (witness: Witness) => readonly PeerTool[];
  readonly wire?: Wire;
  readonly open?: (witness: Witness) => Partial<OpenOptions>;
  readonly start?: StartOptions;
}

/** Where one scenario is played with one library. Everything in it ends with it. */
export class Lab implements AsyncDisposable {
  readonly peer: Peer;
  readonly module: string;
  readonly folder: string = mkdtempSync(join(tmpdir(), 'whoa-peers-'));
  readonly #fixtures: Fixture[] = [];

  /** `module` is the file of the adapter, for processes that must load it again. */
  constructor(peer: Peer, module: string) {
    this.peer = peer;
    this.module = module;
  }

  /** Opens an agent on a provider that follows a script. */
  async open({ answers, tools = () => [], wire, open }: FixtureOptions): Promise<Fixture> {
    const witness = new Witness(join(this.folder, `witness-${this.#fixtures.length}`));
    let said = 0;
    const script = (): Answer => answers[said++] ?? { parts: [{ text: 'OK' }] };
    const provider = await startLoopbackProvider({ script });
    const { url } = provider;
    const options = { url, wire: wire ?? this.peer.wires[0]!, tools: tools(witness), ...open?.(witness) };
    const fixture = new Fixture(provider, witness, await this.peer.open(options));
    this.#fixtures.push(fixture);
    return fixture;
  }

  /** Opens an agent and starts a run. */
  async begin(options: FixtureOptions): Promise<Fixture> {
    const fixture = await this.open(options);
    fixture.start('Begin', options.start);
    return fixture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { agent, provider } of this.#fixtures) {
      await within(Promise.resolve(agent.close?.()), SOON_MS);
      await provider.close();
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Settled {
  readonly ending: Ending;
  /** Milliseconds from the first cancel to the end. */
  readonly afterMs: number;
}

/** One agent, its provider and its witness. */
export class Fixture {
  readonly provider: LoopbackProvider;
  readonly witness: Witness;
  readonly agent: PeerAgent;
  run!: PeerRun;
  #endedAt: number | undefined;
  cancelledAt = 0;

  constructor(provider: LoopbackProvider, witness: Witness, agent: PeerAgent) {
    this.provider = provider;
    this.witness = witness;
    this.agent = agent;
  }

  start(input: string, options: StartOptions = {}): PeerRun {
    this.#endedAt = undefined;
    const run = this.agent.start(input, options);
    this.run = run;
    const note = (): void => {
      if (this.run === run) this.#endedAt = now();
    };
    run.ended.then(note, note);
    return run;
  }

  get isEnded(): boolean {
    return this.#endedAt !== undefined;
  }

  /** Waits until a reader of the run has seen this text. */
  async sees(text: string): Promise<void> {
    if (await until(() => this.run.text().includes(text), WAIT_MS)) return;
    throw new NotReached(`the reader never saw "${text}", only "${this.run.text()}"`);
  }

  /** Waits until a tool has started. */
  async starts(tool: string): Promise<void> {
    if (await until(() => this.witness.has(tool, 'start'), WAIT_MS)) return;
    throw new NotReached(`the tool ${tool} never started`);
  }

  cancel(reason = 'the user asked'): void {
    this.cancelledAt ||= now();
    this.run.cancel(reason);
  }

  /** Waits for the end of the run, or returns undefined. */
  async settle(ms: number = WAIT_MS): Promise<Settled | undefined> {
    const ending = await within(this.run.ended, ms);
    return ending && { ending, afterMs: Math.round((this.#endedAt ?? now()) - this.cancelledAt) };
  }

  /** Cancels and waits for the end; the end must come. */
  async stop(reason?: string, ms?: number): Promise<Settled> {
    this.cancel(reason);
    const settled = await this.settle(ms);
    if (settled === undefined) throw new NotSettled();
    return settled;
  }

  /** Runs the next turn with the history that the library gives, and returns what the provider saw first. */
  async next(session: unknown): Promise<{ request: LoopbackProvider['requests'][number] | undefined; ending: Ending }> {
    const before = this.provider.requests.length;
    const starts = (): number => this.witness.marks(undefined, 'start').length;
    const startsBefore = starts();
    const ending = await within(this.start('Go on', { session }).ended, WAIT_MS);
    if (ending === undefined) {
      throw new Error(
        `the next turn ${starts() > startsBefore ? 'started the stopped call again, and ' : ''}did not end`,
      );
    }
    return { request: this.provider.requests[before], ending };
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

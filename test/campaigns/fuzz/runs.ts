// Random runs in virtual time: agents up to three deep, with tools, models and approvers of all kinds, are cancelled from anywhere,
// including from hooks. The oracle uses what tools and models noted themselves, and shares no code with `checkHistory`.
import { type Agent, CancellationToken, createAgent, createAgentTool, type Run, type StopMode } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { Dice } from './dice.ts';
import { Found, settle } from './found.ts';
import { createRandomModel } from './run-model.ts';
import { CLEANUP_MS, checkRun, type RunFacts, UNDO_MS } from './run-oracle.ts';
import { createRandomTool, type Workshop, wait } from './run-tools.ts';

const MAX_STEPS = 4_000;
const MODES: readonly StopMode[] = [
  'graceful',
  'now',
  'kill',
  { drainMs: 0, abortMs: 0 },
  { drainMs: 200, abortMs: 100 },
];
const HOOKS = [
  'turn-start',
  'text',
  'call-planned',
  'wave-start',
  'call-start',
  'call-start',
  'call-end',
  'cancel-requested',
  'level-changed',
  'undo-start',
];

/** Runs the seeds from `from` on. */
export async function fuzzRuns({ from, count }: { readonly from: number; readonly count: number }): Promise<Found> {
  const found = new Found();
  for (let seed = from; seed < from + count; seed++) {
    found.where = `run ${seed}`;
    await new FuzzedRun(seed, found).run();
  }
  return found;
}

class FuzzedRun implements Workshop {
  readonly dice: Dice;
  readonly found: Found;
  readonly world: ReturnType<typeof createVirtualWorld>;
  readonly executions: Workshop['executions'] = [];
  readonly undone: Workshop['undone'] = [];
  readonly ends: Workshop['ends'] = { count: 0 };
  readonly facts: RunFacts;
  readonly #root: CancellationToken | undefined;
  readonly #controller: AbortController | undefined;
  readonly #hook: string;
  #hooked = 0;
  #movesLeft: number;
  #run: Run | undefined;
  #isNotifying = false;
  #level: string | undefined;

  constructor(seed: number, found: Found) {
    this.dice = new Dice(seed);
    this.found = found;
    this.world = createVirtualWorld({ seed });
    this.#root = this.dice.chance(0.4) ? new CancellationToken({ name: 'root', clock: this.clock }) : undefined;
    this.#controller = this.dice.chance(0.2) ? new AbortController() : undefined;
    this.#hook = this.dice.pick(HOOKS);
    this.#movesLeft = 1 + this.dice.below(3);
    const { executions, undone } = this;
    this.facts = {
      executions,
      undone,
      events: [],
      requests: [],
      denied: new Set(),
      allowed: new Set(),
      hasApprover: false,
      stop: undefined,
      undo: false,
    };
  }

  get clock(): FuzzedRun['world']['clock'] {
    return this.world.clock;
  }

  async run(): Promise<void> {
    const { dice, clock, found, facts } = this;
    const agent = this.#createAgent(0);
    for (let timers = dice.below(3); timers > 0; timers--)
      clock.setTimer(dice.pick([0, 1, 5, 30, 100, 333, 1_000]), () => this.#move('timer'));
    const sources = {
      ...(this.#root && { token: this.#root }),
      ...(this.#controller && { signal: this.#controller.signal }),
    };
    this.#run = agent.run('go', { ...sources, hooks: { any: (event) => this.#notice(event) } });
    if (dice.chance(0.03)) this.#move('the tick of its start');
    let isOver = false;
    this.#run.outcome.then(
      (outcome) => {
        isOver = true;
        facts.outcome = outcome;
      },
      (error: unknown) => found.expect(false, `its outcome was rejected: ${String(error)}`),
    );
    for (let step = 0; step < MAX_STEPS && !isOver; step++) if (!(await this.#advance())) break;
    if (!isOver) {
      // Nothing limits a tool or an approver that never ends: only a stop does.
      found.expect(facts.stop === undefined, 'a run that was stopped never ended');
      this.#cancel('kill', false);
      for (let step = 0; step < MAX_STEPS && !isOver; step++) await this.#advance();
    }
    found.expect(isOver, 'a run that was killed never ended');
    if (facts.outcome === undefined) return;
    found.count(facts.outcome.status);
    const kept = JSON.stringify(facts.outcome);
    checkRun(facts, found);
    for (let late = 0; late < 300 && clock.fireNext(); late++) await settle(1);
    await settle();
    found.expect(JSON.stringify(facts.outcome) === kept, 'the outcome changed after the end');
    found.expect(clock.pending === 0, `${clock.pending} timers were left`);
    const { children, listeners } = this.#root?.statistics ?? { children: 0, listeners: 0 };
    found.expect(children + listeners === 0, `its parent token kept ${children} children and ${listeners} listeners`);
    await this.#next(agent);
  }

  act(where: string): void {
    if (this.dice.chance(0.03)) this.#move(where);
  }

  starts(what: string): void {
    this.found.expect(
      this.facts.stop === undefined || this.facts.outcome !== undefined,
      `a ${what} started after a stop was returned`,
    );
  }

  async #advance(): Promise<boolean> {
    await settle();
    if (this.facts.outcome !== undefined || this.clock.fireNext()) return true;
    await settle();
    return this.facts.outcome !== undefined || this.clock.fireNext();
  }

  #createAgent(depth: number): Agent {
    const { dice, world, facts } = this;
    const tools = Array.from({ length: 1 + dice.below(3) }, (_, index) =>
      createRandomTool(this, depth, `tool_${depth}_${index}_${dice.below(1e6)}`),
    );
    if (depth < 2 && dice.chance(0.4))
      tools.push(createAgentTool(this.#createAgent(depth + 1), { name: `agent_${depth}`, description: 'A sub-agent' }));
    const approve = depth === 0 && dice.chance(0.4) ? this.#createApprover() : undefined;
    facts.hasApprover ||= approve !== undefined;
    return createAgent({
      name: `agent ${depth}`,
      world,
      tools,
      model: createRandomModel(this, tools, facts),
      ...(approve && { approve }),
      stopMode: dice.pick(['graceful', 'graceful', 'now', 'kill'] as const),
      concurrency: dice.pick([1, 2, 16]),
      cleanupTimeoutMs: CLEANUP_MS,
      undoTimeoutMs: UNDO_MS,
      retry: { maxAttempts: 2, backoffMs: 10, idleTimeoutMs: 3_000 },
    });
  }

  #createApprover() {
    const { dice, clock, facts } = this;
    const kind = dice.pick(['yes', 'no', 'sometimes', 'slow', 'throws', 'never'] as const);
    return async ({ call }: { readonly call: { readonly id: string } }): Promise<boolean> => {
      this.starts('question');
      this.act('approve');
      if (kind === 'never') await new Promise(() => {});
      if (kind === 'slow') await wait(clock, 400);
      if (kind === 'throws') throw new Error('no one is here');
      const isYes = kind === 'yes' || kind === 'slow' || (kind === 'sometimes' && dice.chance(0.5));
      // A sub-agent's question has the path of its call.
      (isYes ? facts.allowed : facts.denied).add(call.id.split('/').at(-1)!);
      return isYes;
    };
  }

  #notice(event: RunFacts['events'][number]): void {
    const { facts } = this;
    facts.events.push(event);
    if (event.type === 'level-changed') this.#level = event.level;
    if (event.type !== this.#hook || ++this.#hooked > 2) return;
    this.#isNotifying = true;
    this.#move(`hook ${event.type}`);
    this.#isNotifying = false;
  }

  #move(where: string): void {
    const { dice, found, facts } = this;
    const run = this.#run;
    if (run === undefined || facts.outcome !== undefined || this.#movesLeft <= 0) return;
    this.#movesLeft--;
    const move = dice.pick([
      'cancel',
      'cancel',
      'cancel',
      'escalate',
      'parent',
      'signal',
      'call',
      'steer',
      'undo',
      'dispose',
    ] as const);
    const mode = dice.pick(MODES);
    found.count(where.startsWith('hook') ? `${move} in a hook` : move);
    if (move === 'cancel') this.#cancel(mode, dice.chance(0.3));
    else if (move === 'escalate') {
      this.#cancel('graceful', false);
      this.#cancel(mode, dice.chance(0.3));
    } else if (move === 'parent' && this.#root !== undefined) {
      const receipt = this.#root.cancel({ kind: 'shutdown' }, { mode });
      if (receipt.result !== 'too-late') facts.stop ??= { killAt: receipt.killAt };
    } else if (move === 'signal' && this.#controller !== undefined) {
      this.#controller.abort();
      facts.stop ??= { killAt: this.clock.now() + 2_000 };
    } else if (move === 'call')
      run.cancelCall(dice.pick(['none', ...facts.executions.map(({ callId }) => callId)]), 'only this one', { mode });
    else if (move === 'steer') run.steer(`also ${where}`);
    else if (move === 'undo')
      run.undo().catch((error: unknown) => found.expect(false, `undo was rejected: ${String(error)}`));
    else if (move === 'dispose') {
      facts.stop ??= { killAt: this.clock.now() + 12_000 };
      run[Symbol.asyncDispose]().then(undefined, (error: unknown) =>
        found.expect(false, `disposing was rejected: ${String(error)}`),
      );
    }
  }

  #cancel(mode: StopMode, undo: boolean): void {
    const { found, facts } = this;
    const receipt = this.#run!.cancel('stop', { mode, undo });
    if (receipt.result === 'too-late') return;
    facts.undo ||= undo;
    // A hook that cancels sees the new level after it has returned.
    found.expect(
      this.#isNotifying || receipt.level === this.#level,
      `a receipt says ${receipt.level} at ${this.#level}`,
    );
    const { killAt, reason } = receipt;
    found.expect(
      facts.stop?.reason === undefined || JSON.stringify(facts.stop.reason) === JSON.stringify(reason),
      'two reasons',
    );
    const isSooner = facts.stop === undefined || killAt <= facts.stop.killAt || facts.stop.reason === undefined;
    found.expect(isSooner, 'a later cancel gave the run more time');
    facts.stop = { killAt: Math.min(killAt, facts.stop?.killAt ?? Infinity), reason };
  }

  /** The next turn must be valid, whatever happened in this one. */
  async #next(agent: Agent): Promise<void> {
    const { found, facts, world, clock, dice, executions, undone, ends } = this;
    const model = createRandomModel(
      { clock, dice, found, executions, undone, ends, act: () => {}, starts: () => {} },
      [],
      facts,
    );
    const outcome = await createAgent({ name: agent.name, world, model }).run('next', {
      history: facts.outcome!.messages,
    }).outcome;
    found.expect(outcome.status === 'success', `the next turn ended as ${outcome.status}`);
  }
}

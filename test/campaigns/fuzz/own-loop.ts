// Random conversations of `createStoppableTurn` in virtual time, with `ai` 5, 6 and 7: cancels anywhere, tools of all kinds, arguments
// that are not a JSON object, ids that repeat, approvals, and turns that are tried again.
import { createCallRecords, createStoppableTurn } from '@whoa/ai-sdk';
import { CancellationToken, type StopMode } from '@whoa/core';
import { VirtualClock } from '@whoa/core/testing';
import * as v7 from 'ai';
import * as v5 from 'ai-v5';
import * as v6 from 'ai-v6';
import { z } from 'zod';
import { Dice } from './dice.ts';
import { Found, settle } from './found.ts';
import { createLoopModel, findInvalid, type Major, type PromptMessage } from './loop-model.ts';
import { wait } from './run-tools.ts';

const MODES: readonly StopMode[] = [
  'graceful',
  'now',
  'kill',
  { drainMs: 100, abortMs: 100 },
  { drainMs: 0, abortMs: 0 },
];
const LOOPS = { 5: v5, 6: v6, 7: v7 } as unknown as Readonly<Record<Major, Loop>>;
const KINDS = ['quick', 'obeys', 'deaf', 'streams', 'must-finish', 'asks'] as const;
type Kind = (typeof KINDS)[number];

interface Loop {
  streamText(options: object): {
    readonly fullStream?: AsyncIterable<ShownPart>;
    readonly stream: AsyncIterable<ShownPart>;
  };
}

interface ShownPart {
  readonly type: string;
  readonly text?: string;
  readonly delta?: string;
}

interface Question {
  readonly approvalId: string;
  readonly toolCallId: string;
}

type Message = PromptMessage & { readonly content: string | readonly object[] };

/** What one call really did. */
interface Work {
  readonly tool: string;
  state: 'planned' | 'running' | 'done' | 'stopped';
  runs: number;
}

export async function fuzzOwnLoops({ from, count }: { readonly from: number; readonly count: number }): Promise<Found> {
  const found = new Found();
  // `ai` logs a warning for each feature that a model does not have.
  Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });
  for (let seed = from; seed < from + count; seed++) {
    const dice = new Dice(seed);
    const major = dice.pick([5, 6, 7] as const);
    found.where = `own loop ${seed}, ai ${major}`;
    await new FuzzedLoop(major, dice, found).run();
  }
  return found;
}

class FuzzedLoop {
  readonly #major: Major;
  readonly #dice: Dice;
  readonly #found: Found;
  readonly #clock = new VirtualClock();
  readonly #calls = createCallRecords();
  readonly #works = new Map<number, Work>();
  readonly #allowed = new Set<number>();
  readonly #tools: Readonly<Record<string, object>>;
  #history: Message[] = [];
  #token = new CancellationToken();
  #isStopped = false;
  #isOver = false;
  #movesLeft = 0;

  constructor(major: Major, dice: Dice, found: Found) {
    this.#major = major;
    this.#dice = dice;
    this.#found = found;
    const kinds = KINDS.filter((kind) => dice.chance(0.6) && (kind !== 'asks' || major !== 5));
    const names = kinds.length > 0 ? kinds : (['quick'] as const);
    this.#tools = Object.fromEntries(names.map((kind) => [kind, this.#createTool(kind)]));
  }

  async run(): Promise<void> {
    const dice = this.#dice;
    this.#history = [{ role: 'user', content: 'Go' }];
    for (let turn = 2 + dice.below(4); turn > 0; turn--) {
      const before = this.#history;
      if (!(await this.#take())) return;
      if (dice.chance(0.1)) {
        this.#found.count('tried again');
        this.#history = before;
        continue;
      }
      if (!this.#answer()) this.#history = [...this.#history, { role: 'user', content: 'And?' }];
    }
    for (let late = 0; late < 200 && this.#clock.fireNext(); late++) await settle(1);
    await settle(6);
    this.#found.expect(this.#clock.pending === 0, `${this.#clock.pending} timers were left`);
    const running = this.#calls.records().filter(({ state }) => state === 'running');
    this.#found.expect(running.length === 0, 'a recorded call still runs');
  }

  /** Takes one turn. Returns whether it settled. */
  async #take(): Promise<boolean> {
    const [dice, found, clock] = [this.#dice, this.#found, this.#clock];
    const token = new CancellationToken({ clock });
    this.#token = token;
    this.#isStopped = this.#isOver = false;
    this.#movesLeft = dice.chance(0.7) ? 1 + dice.below(2) : 0;
    const timer = dice.chance(0.6)
      ? clock.setTimer(dice.pick([0, 1, 5, 30, 60, 200]), () => this.#stop('timer'))
      : undefined;
    const tools = this.#tools;
    const mustFinish = 'must-finish' in tools ? { 'must-finish': { timeoutMs: 500 } } : {};
    const turn = createStoppableTurn({
      token,
      history: this.#history,
      tools: { ...tools, search: searchTool(this.#major) } as Readonly<Record<string, object>>,
      calls: this.#calls,
      mustFinish,
      maxSteps: 4,
    });
    const model = createLoopModel({
      major: this.#major,
      clock,
      dice,
      found,
      tools: Object.keys(tools),
      act: (where) => this.#act(where),
      starts: (what) => this.#starts(what),
      plan: (tool) => this.#works.set(this.#works.size + 1, { tool, state: 'planned', runs: 0 }).size,
    });
    const approval = this.#major === 7 && 'asks' in tools ? { toolApproval: { asks: 'user-approval' } } : {};
    const result = LOOPS[this.#major].streamText({ model, ...turn, ...approval, maxRetries: 0, onError: () => {} });
    let shown = '';
    const reading = (async () => {
      for await (const { type, text, delta } of result.fullStream ?? result.stream)
        if (type === 'text-delta') shown += text ?? delta ?? '';
    })().catch(() => {});
    let settled: { readonly messages: readonly object[] } | undefined;
    turn.settled.then(
      (end) => (settled = end),
      (error: unknown) => found.expect(false, `settled was rejected: ${String(error)}`),
    );
    for (let step = 0; step < 1_500 && settled === undefined; step++) {
      await settle(6);
      if (settled !== undefined || clock.fireNext()) continue;
      await settle(20);
      if (settled !== undefined || clock.fireNext()) continue;
      if (this.#isStopped) break;
      this.#movesLeft = 1;
      this.#stop('it is stuck');
    }
    timer?.[Symbol.dispose]();
    found.expect(settled !== undefined, 'a turn never settled');
    if (settled === undefined) return false;
    this.#isOver = true;
    await Promise.race([reading, settle(20)]);
    const { children, listeners } = token.statistics;
    found.expect(children + listeners === 0, `a token kept ${children} children and ${listeners} listeners`);
    this.#check(settled.messages as readonly Message[], shown);
    this.#history = [...this.#history, ...(JSON.parse(JSON.stringify(settled.messages)) as Message[])];
    return true;
  }

  #check(added: readonly Message[], shown: string): void {
    const found = this.#found;
    const waiting = new Set(findQuestions(added).map(({ toolCallId }) => toolCallId));
    // What was approved before is answered here, without its call.
    const own = added[0]?.role === 'tool' ? added.slice(1) : added;
    const invalid = findInvalid(own, (id) => waiting.has(id));
    found.expect(invalid === undefined, `settled.messages has ${invalid}`);
    const text = getParts(added)
      .map((part) => part.text ?? '')
      .join('');
    found.expect(text.includes(shown.trim()) || shown.trim() === '', 'a text that was shown is missing');
    const results = new Map<string, string>();
    for (const { role, content } of added)
      if (role === 'tool')
        for (const part of content as readonly { toolCallId?: string; output?: unknown }[])
          results.set(part.toolCallId ?? '', JSON.stringify(part.output));
    for (const { type, toolCallId = '', input } of getParts(added)) {
      const n = (input as { readonly n?: number } | undefined)?.n;
      const result = results.get(toolCallId);
      if (type !== 'tool-call' || n === undefined || result === undefined) continue;
      const { state, tool, runs } = this.#works.get(n)!;
      if (state === 'done')
        found.expect(
          result.includes(`done ${n}.`) || result.includes('Outcome unknown'),
          `a ${tool} call that was done is reported as ${result}`,
        );
      if (runs === 0)
        found.expect(
          !result.includes('done') && !result.includes('Interrupted'),
          `a ${tool} call that did not run is reported as ${result}`,
        );
      if (runs === 0 && tool !== 'invented')
        found.expect(!result.includes('may have taken effect'), `a ${tool} call that did not run may have`);
    }
  }

  /** Answers the questions of the last reply. Returns whether there were any. */
  #answer(): boolean {
    const last = this.#history.findLastIndex(({ role }) => role === 'assistant');
    const isLast = this.#history.slice(last + 1).every(({ role }) => role === 'tool');
    const questions = last < 0 || !isLast ? [] : findQuestions(this.#history.slice(last));
    if (questions.length === 0 || this.#dice.chance(0.2)) return false;
    const approved = this.#dice.chance(0.7);
    this.#found.count(approved ? 'approved' : 'denied');
    for (const { toolCallId } of questions) {
      const call = getParts(this.#history.slice(last)).find(
        (part) => part.type === 'tool-call' && part.toolCallId === toolCallId,
      );
      const n = (call?.input as { readonly n?: number } | undefined)?.n;
      if (approved && n !== undefined) this.#allowed.add(n);
    }
    const content = questions.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved }));
    this.#history = [...this.#history, { role: 'tool', content: content as never }];
    return true;
  }

  #createTool(kind: Kind): object {
    const [clock, found] = [this.#clock, this.#found];
    const inputSchema = z.object({ n: z.number() });
    const run = async (n: number, signal: AbortSignal | undefined): Promise<string> => {
      const work = this.#begin(kind, n);
      try {
        const ms = this.#dice.pick([0, 10, 100, 700]);
        await wait(
          clock,
          kind === 'must-finish' ? 300 : ms,
          kind === 'deaf' || kind === 'must-finish' ? undefined : signal,
        );
        this.#act(kind);
        work.state = 'done';
        return `done ${n}.`;
      } finally {
        if (work.state === 'running') work.state = 'stopped';
      }
    };
    const begin = (n: number): Work => this.#begin(kind, n);
    const act = (): void => this.#act(kind);
    async function* stream({ n }: { readonly n: number }, { abortSignal }: { readonly abortSignal?: AbortSignal }) {
      const work = begin(n);
      try {
        for (let step = 0; step < 5; step++) {
          found.expect(abortSignal?.aborted !== true, 'a streaming tool was asked for a step after an abort');
          await wait(clock, 30);
          act();
          yield step === 4 ? `done ${n}.` : `step ${step}`;
        }
        work.state = 'done';
      } finally {
        if (work.state === 'running') work.state = 'stopped';
      }
    }
    const execute =
      kind === 'streams'
        ? stream
        : ({ n }: { readonly n: number }, { abortSignal }: { readonly abortSignal?: AbortSignal }) =>
            run(n, abortSignal);
    return {
      inputSchema,
      description: kind,
      execute,
      ...(kind === 'asks' && this.#major === 6 && { needsApproval: true }),
    };
  }

  #begin(kind: Kind, n: number): Work {
    this.#starts(`${kind} tool`);
    const work = this.#works.get(n)!;
    this.#found.count(kind);
    this.#found.expect(work.runs++ === 0, `a ${kind} call ran twice`);
    this.#found.expect(kind !== 'asks' || this.#allowed.has(n), 'a call ran without a yes');
    work.state = 'running';
    return work;
  }

  #starts(what: string): void {
    this.#found.expect(!this.#isStopped || this.#isOver, `a ${what} started after a stop`);
  }

  #act(where: string): void {
    if (this.#dice.chance(0.05)) this.#stop(where);
  }

  #stop(where: string): void {
    if (this.#isOver || this.#movesLeft-- <= 0) return;
    this.#found.count(`stopped in ${where}`);
    this.#isStopped = true;
    this.#token.cancel('stop', { mode: this.#dice.pick(MODES) });
  }
}

/** A tool that the provider runs. */
function searchTool(major: Major): object {
  const about = { id: 'anthropic.web_search_20250305', name: 'search', args: {}, inputSchema: z.object({}) };
  return major === 5
    ? { type: 'provider-defined', ...about }
    : { type: 'provider', isProviderExecuted: true, ...about };
}

type AnyPart = {
  readonly type: string;
  readonly toolCallId?: string;
  readonly input?: unknown;
  readonly text?: string;
};

function getParts(messages: readonly Message[]): readonly AnyPart[] {
  return messages.flatMap(({ content }) => (typeof content === 'string' ? [] : (content as readonly AnyPart[])));
}

function findQuestions(messages: readonly Message[]): readonly Question[] {
  return getParts(messages).filter(({ type }) => type === 'tool-approval-request') as unknown as readonly Question[];
}

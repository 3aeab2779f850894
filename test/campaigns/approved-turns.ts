// Conversations with a custom loop, in which people approve, deny, stop, continue and retry at random: nothing runs
// without a yes, nothing runs twice, the model sees what ran, and every request is accepted.
import { createCallRecords } from '@whoa/ai-sdk';
import {
  type LoopbackProvider,
  type ScriptedResponse,
  startLoopbackProvider,
  type WireFormat,
} from '@whoa/ai-sdk/testing';
import { CancellationToken, type StopMode } from '@whoa/core';
import { createVirtualWorld } from '@whoa/core/testing';
import { aiVersions, type TurnInput } from '../ai-sdk/ai-versions.ts';
import { formats } from '../ai-sdk/providers.ts';

export interface ApprovedTurnsReport {
  readonly conversations: number;
  readonly turns: number;
  readonly stopped: number;
  readonly retried: number;
  readonly approved: number;
  readonly ran: number;
  readonly invalid: number;
  readonly problems: readonly string[];
}

const MAX_PROBLEMS = 10;
const MOVES = 8;

export async function runApprovedTurns(options: {
  readonly conversations: number;
  readonly seed: number;
}): Promise<ApprovedTurnsReport> {
  const counts = { conversations: 0, turns: 0, stopped: 0, retried: 0, approved: 0, ran: 0, invalid: 0 };
  const report = { ...counts, problems: [] as string[] };
  for (let at = 0; at < options.conversations && report.problems.length < MAX_PROBLEMS; at++) {
    const world = createVirtualWorld({ seed: options.seed + at });
    const random = (): number => world.random();
    const version = aiVersions[at % aiVersions.length]!;
    const format = formats[Math.floor(at / aiVersions.length) % formats.length]!;
    const kind = random() < 0.5 ? 'page' : 'bot';
    const where = `ai ${version.major}, ${format}, ${kind}, seed ${options.seed + at}`;
    const conversation = new Conversation({ version, format, kind, random, report });
    try {
      await conversation.run();
    } catch (error) {
      conversation.problems.push(String(error));
    }
    report.conversations++;
    report.problems.push(...conversation.problems.map((problem) => `${where}: ${problem}`));
  }
  return report;
}

interface Setup {
  readonly version: (typeof aiVersions)[number];
  readonly format: WireFormat;
  /** A page keeps UI messages, a bot model messages. */
  readonly kind: 'page' | 'bot';
  readonly random: () => number;
  readonly report: { turns: number; stopped: number; retried: number; approved: number; ran: number; invalid: number };
}

/** How one call ended, by the number in its input. */
interface Payment {
  isApproved: boolean;
  started: number;
  isPaid: boolean;
}

type Provider = Pick<LoopbackProvider, 'url' | 'requests'>;
type Stop = 'early' | 'call' | 'text' | undefined;
type History = readonly unknown[];

class Conversation {
  readonly problems: string[] = [];
  readonly #setup: Setup;
  readonly #calls = createCallRecords();
  readonly #payments = new Map<number, Payment>();
  readonly #answers: ScriptedResponse[] = [];
  readonly #held = new Set<() => void>();
  #history: History = [];
  /** The history of the last turn, to try it again. */
  #sent: History = [];
  #onStart: () => void = () => {};

  constructor(setup: Setup) {
    this.#setup = setup;
  }

  async run(): Promise<void> {
    await using provider = await startLoopbackProvider({
      script: () => this.#answers.shift() ?? { parts: [{ text: 'Fine.' }] },
    });
    this.#history = [this.#say('Hello')];
    for (let move = 0; move < MOVES; move++) {
      const isLast = move === MOVES - 1;
      if (move > 0) await this.#move(isLast);
      const stop = isLast ? undefined : this.#pick<Stop>([undefined, undefined, 'early', 'call', 'call', 'text']);
      if (!isLast && this.#chance(0.5)) this.#answers.push(this.#request());
      await this.#take(provider, stop, !isLast && stop === undefined && this.#chance(0.15));
      this.#check(provider.requests.map(({ refusal }) => refusal?.message));
      if (isLast) this.#checkTold(JSON.stringify(provider.requests.at(-1)?.body ?? ''));
    }
  }

  /** Chooses the next action. */
  async #move(isLast: boolean): Promise<void> {
    const { report } = this.#setup;
    const questions = this.#questions();
    if (isLast) this.#history = [...this.#history, this.#say('So?')];
    else if (questions.length > 0 && this.#chance(0.8)) this.#answer(questions);
    else if (this.#chance(0.4)) {
      report.retried++;
      this.#history = this.#sent;
    } else this.#history = [...this.#history, this.#say(this.#pick(['And?', 'Pay', 'Pay again']))];
    // Abandoned work may end in between.
    if (this.#chance(0.5) || isLast) await this.#release();
  }

  async #take(provider: Provider, stop: Stop, isTwice: boolean): Promise<void> {
    const { report } = this.#setup;
    using token = new CancellationToken();
    const mode = this.#pick<StopMode>(['kill', { abortMs: 15 }, { drainMs: 15, abortMs: 15 }]);
    const mustFinish = this.#chance(0.3) && { slow: { timeoutMs: 5_000 } };
    let requests = Infinity;
    const cancel = (): void => {
      if (token.isCancelled) return;
      report.stopped++;
      requests = provider.requests.length;
      token.cancel({ kind: 'user' }, { mode });
      // The stop waits for a call that must finish.
      if (mustFinish || this.#chance(0.5)) setImmediate(() => void this.#release());
    };
    // A turn that no one stops waits for its calls.
    this.#onStart =
      stop === 'call' ? cancel : stop === undefined ? () => setImmediate(() => void this.#release()) : () => {};
    if (stop === 'early') cancel();
    const onPart = (type: string): void => {
      if (stop === 'text' && type === 'text-delta') cancel();
    };
    const errors: unknown[] = [];
    const input = { ...this.#input(provider.url), ...(mustFinish && { mustFinish }), onPart, token };
    const onError = (error: unknown): void => void errors.push(error);
    this.#sent = this.#history;
    const ending = this.#turn({ ...input, history: this.#history, onError });
    const other = isTwice ? this.#turn({ ...input, history: this.#history, onError }) : undefined;
    // Calls that started before a text was stopped are held.
    const [after] = await Promise.all([ending, other, stop === 'text' ? this.#releaseLater(token) : undefined]);
    this.#history = after;
    report.turns += isTwice ? 2 : 1;
    if (provider.requests.length > requests) this.problems.push('the model was asked after a cancel');
    if (token.isCancelled) return;
    for (const error of errors) this.problems.push(`a turn that was not stopped failed: ${String(error)}`);
  }

  /** Ends calls that would hold up a turn which is to be stopped in its text. */
  async #releaseLater(token: CancellationToken): Promise<void> {
    for (let round = 0; round < 50 && !token.isCancelled; round++) {
      await new Promise((resolve) => setImmediate(resolve));
      await this.#release();
    }
    this.#onStart = () => setImmediate(() => void this.#release());
    await this.#release();
  }

  async #turn(input: TurnInput): Promise<History> {
    const { version, kind } = this.#setup;
    if (kind === 'page') return (await version.stream(input)).history;
    const { settled } = await version.streamBot(input);
    return [...input.history, ...(JSON.parse(JSON.stringify(settled.messages)) as unknown[])];
  }

  #input(url: string): Omit<TurnInput, 'history' | 'token'> {
    const { version, format } = this.#setup;
    const slow = async ({ at = 0 }: { readonly at?: number | undefined }): Promise<string> => {
      const payment = this.#payments.get(at)!;
      payment.started++;
      this.#setup.report.ran++;
      await new Promise<void>((resolve) => {
        this.#held.add(resolve);
        this.#onStart();
      });
      payment.isPaid = true;
      return `paid ${at}.`;
    };
    const needsApproval = version.major !== 5;
    return { url, format, calls: this.#calls, slow, fast: () => 'found', needsApproval };
  }

  /** A reply with one to three payments, under ids as providers make them, or one with arguments that no tool accepts. */
  #request(): ScriptedResponse {
    if (this.#chance(0.25)) {
      this.#setup.report.invalid++;
      return {
        parts: [{ text: 'Pay.' }, { call: 'slow', arguments: this.#pick(['{"at":', '[1]', '"x"', '5', 'null']) }],
      };
    }
    const count = this.#pick([1, 1, 2, 3]);
    const calls = Array.from({ length: count }, (_, index) => {
      const at = this.#payments.size + 1;
      this.#payments.set(at, { isApproved: this.#setup.version.major === 5, started: 0, isPaid: false });
      const id = this.#pick([
        `c${at}`,
        `call_${index}`,
        `functions.slow:${index}`,
        `chatcmpl-tool-${'0'.repeat(31)}${index}`,
      ]);
      return { call: 'slow', id, input: { at } };
    });
    // An approval cannot distinguish two calls of one reply with the same id.
    const unique = new Map(calls.map((call) => [call.id, call]));
    return { parts: [{ text: 'May I?' }, ...unique.values()] };
  }

  /** Parts of the last reply that wait for a person. */
  #questions(): Question[] {
    const last = this.#history.at(-1) as { role: string; parts?: UiPart[]; content?: unknown };
    if (last.role !== 'assistant') return [];
    if (last.parts !== undefined)
      return last.parts.flatMap((part) =>
        part.state === 'approval-requested' ? [{ id: part.approval!.id, at: part.input!.at }] : [],
      );
    const parts = last.content as readonly ModelPart[];
    return parts.flatMap(({ type, approvalId, toolCallId }) => {
      const call = parts.find((part) => part.type === 'tool-call' && part.toolCallId === toolCallId);
      return type === 'tool-approval-request' ? [{ id: approvalId!, at: call!.input!.at }] : [];
    });
  }

  #answer(questions: readonly Question[]): void {
    const answers = questions.flatMap(({ id, at }) => {
      const approved = this.#chance(0.75);
      // A page sends all answers together; a bot may send some.
      if (this.#setup.kind === 'bot' && this.#chance(0.1)) return [];
      this.#payments.get(at)!.isApproved ||= approved;
      if (approved) this.#setup.report.approved++;
      return [{ id, approved }];
    });
    const last = this.#history.at(-1) as { parts?: UiPart[] };
    if (last.parts === undefined) {
      const content = answers.map(({ id, approved }) => ({ type: 'tool-approval-response', approvalId: id, approved }));
      this.#history = content.length === 0 ? this.#history : [...this.#history, { role: 'tool', content }];
      return;
    }
    const parts = last.parts.map((part) => {
      const answer = answers.find(({ id }) => id === part.approval?.id);
      if (answer === undefined) return part;
      return { ...part, state: 'approval-responded', approval: { ...part.approval, approved: answer.approved } };
    });
    this.#history = [...this.#history.slice(0, -1), { ...last, parts }];
  }

  #say(text: string): unknown {
    const { kind, random } = this.#setup;
    if (kind === 'bot') return { role: 'user', content: text };
    return { id: `u${random()}`, role: 'user', parts: [{ type: 'text', text }] };
  }

  /** Releases the calls that wait, and waits for everything that follows. */
  async #release(): Promise<void> {
    for (const resolve of this.#held) resolve();
    this.#held.clear();
    await new Promise((resolve) => setImmediate(resolve));
  }

  #check(refusals: readonly (string | undefined)[]): void {
    for (const refusal of refusals) if (refusal !== undefined) this.problems.push(`refused: ${refusal}`);
    for (const [at, { isApproved, started }] of this.#payments) {
      if (started > 0 && !isApproved) this.problems.push(`payment ${at} ran without a yes`);
      if (started > 1) this.problems.push(`payment ${at} ran ${started} times`);
    }
  }

  /** The model sees every payment, wherever its call is. */
  #checkTold(body: string): void {
    for (const [at, { isPaid }] of this.#payments) {
      const isSent = new RegExp(`at\\\\*":${at}\\D`).test(body);
      if (isSent && isPaid !== body.includes(`paid ${at}.`))
        this.problems.push(`payment ${at} was ${isPaid ? 'made and not told' : 'told and not made'}: ${body}`);
    }
  }

  #chance(probability: number): boolean {
    return this.#setup.random() < probability;
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#setup.random() * items.length)]!;
  }
}

interface Question {
  readonly id: string;
  readonly at: number;
}

interface UiPart {
  readonly state?: string;
  readonly approval?: { readonly id: string };
  readonly input?: { readonly at: number };
}

interface ModelPart {
  readonly type: string;
  readonly approvalId?: string;
  readonly toolCallId?: string;
  readonly input?: { readonly at: number };
}

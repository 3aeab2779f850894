import type { Usage } from '@whoa/core';
import type { AssistantMessage } from '@whoa/core/internal';
import { addUsage, NO_USAGE } from '@whoa/core/internal';
import type { ProviderWait, TaskActivity, TaskSpending } from '../../task.ts';
import { spentAsReserved, withoutLimit } from '../outcome.ts';
import type { PostponedTurn } from './journal-event.ts';

/** The parts of a run's events that are counted. */
interface Counted {
  readonly type: string;
  readonly message?: unknown;
  /** The event of a run inside a call. */
  readonly event?: Counted;
}

/** Counts what a task does, from the events of its runs. It continues from what its lost workers had counted. */
export class ActivityCounter {
  #turns: number;
  #calls: number;
  #usage: Usage | undefined;
  #wait: ProviderWait | undefined;
  #spending: TaskSpending | undefined;
  /** A reply is being written: what it uses is not known yet. */
  #isReplying = false;
  /** Something was counted. TaskHandler that is not an agent counts nothing. */
  #isUsed: boolean;

  constructor(before: TaskActivity | undefined) {
    this.#turns = before?.turns ?? 0;
    this.#calls = before?.calls ?? 0;
    this.#usage = before?.usage;
    this.#spending = before?.spending && spentAsReserved(before.spending);
    this.#isUsed = before !== undefined;
  }

  get current(): TaskActivity | undefined {
    if (!this.#isUsed) return undefined;
    const usage = this.#isReplying ? { ...(this.#usage ?? NO_USAGE), isComplete: false } : this.#usage;
    const counts = { turns: this.#turns, calls: this.#calls };
    const money = this.#spending && { spending: this.#spending };
    return { ...counts, ...(usage && { usage }), ...money, ...(this.#wait && { providerWait: this.#wait }) };
  }

  note(event: Counted): void {
    if (event.type === 'spending') {
      this.#isUsed = true;
      this.#spending = withoutLimit(event as unknown as TaskSpending);
    }
    if (event.type === 'turn-start') {
      this.#isUsed = true;
      this.#isReplying = true;
    }
    if (event.type === 'turn-end') {
      const { content } = event.message as AssistantMessage;
      this.#turns++;
      this.#calls += content.filter(({ type }) => type === 'call').length;
      this.#isReplying = false;
    }
    if (event.type === 'turn-postponed') {
      const { error, since, attempts } = event as PostponedTurn;
      this.#wait = { error, since, attempts };
      this.#isReplying = false;
    }
    this.countTokens(event);
  }

  /** Counts the tokens of a reply. Agents inside calls count too, however deep. */
  countTokens(event: Counted): void {
    if (event.type === 'call-event' && event.event !== undefined) this.countTokens(event.event);
    if (event.type !== 'turn-end') return;
    const { usage } = (event.message ?? {}) as Partial<AssistantMessage>;
    if (usage === undefined) return;
    const { inputTokens, cachedInputTokens = 0, outputTokens, isComplete } = usage;
    const [input, cached, output] = [inputTokens, cachedInputTokens, outputTokens].map(toCount) as [
      number,
      number,
      number,
    ];
    const used = { inputTokens: input, cachedInputTokens: cached, outputTokens: output, isComplete };
    this.#usage = addUsage(this.#usage ?? NO_USAGE, used);
  }
}

/** Providers report what they like, and stores reject what is not a count. */
function toCount(tokens: number): number {
  return Number.isFinite(tokens) ? Math.max(0, Math.round(tokens)) : 0;
}

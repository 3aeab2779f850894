import type { Agent, Content, Message, Outcome } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import { Journal } from '../prompt/journal.ts';
import { Outbox } from '../prompt/outbox.ts';
import type { Prompt } from '../prompt/prompt.ts';
import { UpdateTranslator } from '../prompt/update-translator.ts';
import type { PromptEnd, Update } from '../updates.ts';
import type { Asking } from './permission.ts';

export interface PromptRunOptions {
  readonly prompt: Prompt;
  readonly agent: Agent;
  readonly content: Content;
  readonly history: readonly Message[];
  /** How many messages the client has been shown names of. */
  readonly namedBefore: number;
  readonly cwd: string;
  readonly contextTokens: number | undefined;
  readonly deadlineMs: number | undefined;
  readonly flushMs: number;
  readonly world: World;
  readonly send: (update: Update) => Promise<void>;
  /** Saves the session with what this prompt has so far. */
  readonly save: () => Promise<void>;
}

/** A prompt at work: a run, what the client is told of it, and what is kept of it. */
export class PromptRun {
  readonly journal: Journal;
  readonly #options: PromptRunOptions;
  readonly #outbox: Outbox;
  readonly #translator: UpdateTranslator;
  #flush: Disposable | undefined;

  constructor(options: PromptRunOptions) {
    const { history, content, namedBefore, send, save, cwd, agent, contextTokens } = options;
    this.#options = options;
    this.#outbox = new Outbox(send);
    this.journal = new Journal(history, content, { namedBefore });
    const push = (update: Update, { isKept = false } = {}): void =>
      this.#outbox.push(update, isKept ? save : undefined);
    this.#translator = new UpdateTranslator({ journal: this.journal, cwd, tools: agent.tools, contextTokens, push });
  }

  /** The name of the person's message. */
  get messageId(): string {
    return this.journal.inputId;
  }

  /** How questions to the person are asked in this prompt. */
  get asking(): Asking {
    const { prompt } = this.#options;
    return {
      begin: async () => {
        this.#outbox.push({ type: 'state', state: 'requires_action' });
        await this.#outbox.drained();
      },
      end: () => this.#outbox.push({ type: 'state', state: 'running' }),
      cancel: () => prompt.cancel({ kind: 'user', via: 'session/request_permission' }),
    };
  }

  /** Runs the agent to its end: it has stopped, and everything it said has been sent. */
  async run(title: string | undefined): Promise<Outcome> {
    const { prompt, agent, content, history, deadlineMs, world } = this.#options;
    this.#outbox.push({ type: 'user', messageId: this.messageId, content, isEcho: true });
    this.#outbox.push({ type: 'state', state: 'running' });
    if (title !== undefined) this.#outbox.push({ type: 'info', title, updatedAt: world.clock.now() });
    if (deadlineMs !== undefined) {
      const reason = { kind: 'deadline', message: `the prompt took longer than ${deadlineMs} ms`, via: 'acp' };
      prompt.token.cancelAfter(deadlineMs, reason, { mode: 'now' });
    }
    const run = agent.run(content, {
      history,
      token: prompt.token,
      hooks: {
        any: (event) => {
          this.#translator.handle(event);
          if (event.type !== 'run-end') this.#saveSoon();
        },
      },
    });
    prompt.running(run);
    const outcome = await run.outcome;
    this.#flush?.[Symbol.dispose]();
    await this.#outbox.drained();
    return outcome;
  }

  /** Tells what is left to tell, once the history is kept; nothing follows. */
  async end(end: PromptEnd): Promise<void> {
    this.#translator.close({ isCancelled: end.stop === 'cancelled' || end.stop === 'max_turn_requests' });
    this.#outbox.push({ type: 'state', state: 'idle', end });
    await this.#outbox.close();
  }

  #saveSoon(): void {
    const { world, flushMs, save } = this.#options;
    this.#flush ??= world.clock.setTimer(flushMs, () => {
      this.#flush = undefined;
      save().catch(() => {});
    });
  }
}

/** How an outcome is told. */
export function endOf(outcome: Outcome): PromptEnd {
  const { usage } = outcome;
  if (outcome.status === 'failed') return { stop: 'error', message: messageOf(outcome.error), usage };
  if (outcome.status === 'cancelled') {
    const stop = outcome.reason.kind === 'budget' ? 'max_turn_requests' : 'cancelled';
    return { stop, usage, report: outcome.stop };
  }
  const last = outcome.messages.findLast((message) => message.role === 'assistant');
  return { stop: last?.stopReason === 'length' ? 'max_tokens' : 'end_turn', usage };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

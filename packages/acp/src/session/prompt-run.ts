import type { Agent, Content, Outcome } from '@whoa/core';
import { describeError } from '@whoa/core/internal';
import { Journal } from '../prompt/journal.ts';
import { Outbox } from '../prompt/outbox.ts';
import type { Prompt } from '../prompt/prompt.ts';
import { UpdateTranslator } from '../prompt/update-translator.ts';
import type { SessionRecord } from '../store/store.ts';
import type { PromptResult, Update } from '../updates.ts';
import type { ConnectionContext } from './connection-context.ts';
import type { Asking } from './permission.ts';

export interface PromptRunSetup {
  readonly prompt: Prompt;
  readonly agent: Agent;
  readonly content: Content;
  /** The session before this prompt. */
  readonly record: SessionRecord;
  /** How many message ids the client has seen. */
  readonly namedBefore: number;
  readonly around: ConnectionContext;
  readonly send: (update: Update) => Promise<void>;
  /** Saves the session with the state of this prompt so far. */
  readonly save: () => Promise<void>;
}

/** A running prompt: its run, the updates for the client, and the saved state. */
export class PromptRun {
  readonly journal: Journal;
  readonly #options: PromptRunSetup;
  readonly #outbox: Outbox;
  readonly #translator: UpdateTranslator;
  #flush: Disposable | undefined;

  constructor(options: PromptRunSetup) {
    const { record, content, namedBefore, send, save, agent, around } = options;
    const { cwd, messages } = record;
    const { contextTokens } = around.options;
    this.#options = options;
    this.#outbox = new Outbox(send);
    this.journal = new Journal(messages, content, { namedBefore });
    const push = (update: Update, { isKept = false } = {}): void =>
      this.#outbox.push(update, isKept ? save : undefined);
    this.#translator = new UpdateTranslator({ journal: this.journal, cwd, tools: agent.tools, contextTokens, push });
  }

  /** The id of the user's message. */
  get messageId(): string {
    return this.journal.inputId;
  }

  /** How questions to the user are asked in this prompt. */
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

  /** Runs the agent to its end, and resolves when all updates have been sent. */
  async run({ title, notices }: { title: string | undefined; notices: readonly string[] }): Promise<Outcome> {
    const { prompt, agent, content, record, around } = this.#options;
    const { startRun = (_, input, options) => agent.run(input, options), promptTimeoutMs: timeoutMs } = around.options;
    this.#outbox.push({ type: 'user', messageId: this.messageId, content, isEcho: true });
    this.#outbox.push({ type: 'state', state: 'running' });
    if (title !== undefined) this.#outbox.push({ type: 'info', title, updatedAt: around.world.clock.now() });
    for (const text of notices) {
      this.#outbox.push({ type: 'text', messageId: `${this.messageId}-notice`, text: `${text}\n\n` });
    }
    if (timeoutMs !== undefined) {
      const reason = { kind: 'deadline', message: `the prompt took longer than ${timeoutMs} ms`, via: 'acp' };
      prompt.token.cancelAfter(timeoutMs, reason, { mode: 'now' });
    }
    const run = startRun(agent, content, {
      history: record.messages,
      token: prompt.token,
      hooks: {
        any: (event) => {
          this.#translator.handle(event);
          if (event.type !== 'run-end') this.#scheduleSave();
        },
      },
    });
    prompt.running(run);
    const outcome = await run.outcome;
    this.#flush?.[Symbol.dispose]();
    await this.#outbox.drained();
    return outcome;
  }

  /** Sends the last updates once the history is saved; nothing follows. */
  async end(end: PromptResult): Promise<void> {
    this.#translator.close({ isCancelled: end.stop === 'cancelled' || end.stop === 'max_turn_requests' });
    this.#outbox.push({ type: 'state', state: 'idle', end });
    await this.#outbox.close();
  }

  #scheduleSave(): void {
    const { around, save } = this.#options;
    this.#flush ??= around.world.clock.setTimer(around.flushIntervalMs, () => {
      this.#flush = undefined;
      save().catch(() => {});
    });
  }
}

/** Describes an outcome for the client. */
export function toPromptResult(outcome: Outcome): PromptResult {
  const { usage } = outcome;
  if (outcome.status === 'failed') return { stop: 'error', message: describeError(outcome.error), usage };
  if (outcome.status === 'cancelled') {
    const stop = outcome.reason.kind === 'budget' ? 'max_turn_requests' : 'cancelled';
    return { stop, usage, report: outcome.stop };
  }
  const last = outcome.messages.findLast((message) => message.role === 'assistant');
  return { stop: last?.stopReason === 'length' ? 'max_tokens' : 'end_turn', usage };
}

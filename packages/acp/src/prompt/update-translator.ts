import type { RunEvent, Tool } from '@whoa/core';
import type { AssistantMessage, PlanEntry } from '@whoa/core/internal';
import { toReplyText } from '@whoa/core/internal';
import { announceCall, endCall, findPlan } from '../calls.ts';
import type { CallUpdate, Update } from '../updates.ts';
import type { Journal } from './journal.ts';

export interface UpdateTranslatorOptions {
  readonly journal: Journal;
  readonly cwd: string;
  readonly tools: readonly Tool[];
  readonly contextTokens: number | undefined;
  /** `isKept`: the client may see it only after it is saved. */
  readonly push: (update: Update, options?: { readonly isKept: boolean }) => void;
}

/** Translates the events of a run into updates for a client. */
export class UpdateTranslator {
  readonly #options: UpdateTranslatorOptions;
  readonly #open = new Set<string>();
  #shown = '';
  #plan: readonly PlanEntry[] = [];
  #usage: Update | undefined;

  constructor(options: UpdateTranslatorOptions) {
    this.#options = options;
  }

  handle(event: RunEvent): void {
    const { push, journal, tools } = this.#options;
    switch (event.type) {
      case 'turn-start':
        this.#shown = '';
        break;
      case 'text':
        this.#shown += event.text;
        push({ type: 'text', messageId: journal.nextId, text: event.text });
        break;
      case 'thinking':
        push({ type: 'thought', messageId: journal.nextId, text: event.text });
        break;
      case 'call-planned':
        this.#announce({ callId: event.callId, tool: event.tool });
        break;
      case 'turn-end':
        this.#endReply(event.message);
        break;
      case 'call-start': {
        const isCancellable = tools.find(({ name }) => name === event.tool)?.whenCancelled !== 'finish';
        push({ type: 'call', callId: event.callId, status: 'in_progress', isCancellable });
        break;
      }
      case 'call-waiting': {
        const { callId, until, at } = event;
        const content = `It must not be interrupted: the stop waits for it, ${Math.ceil((until - at) / 1_000)} s at most.`;
        push({ type: 'call', callId, content: [{ type: 'content', content }], waitsUntil: until });
        break;
      }
      case 'call-update':
        push({ type: 'call', callId: event.callId, content: [{ type: 'content', content: event.partial.content }] });
        this.#showPlan(findPlan(event.partial.details));
        break;
      case 'call-end':
        // A call that the client was never shown needs no end.
        if (this.#open.delete(event.result.callId)) push(endCall(event.result, this.#options), { isKept: true });
        this.#showPlan(findPlan(event.result.details));
        break;
      default:
        break;
    }
    journal.handle(event);
  }

  /**
   * Ends what the run left open: calls that were never completely requested, and the plan. Usage is the last update.
   */
  close({ isCancelled }: { readonly isCancelled: boolean }): void {
    const { push } = this.#options;
    for (const callId of this.#open) {
      const text = 'Not started: the reply ended before the call was complete. It had no effect.';
      push({
        type: 'call',
        callId,
        status: isCancelled ? 'cancelled' : 'failed',
        content: [{ type: 'content', content: text }],
        ...(isCancelled && { stopped: { state: 'not-started' } }),
      });
    }
    this.#open.clear();
    if (isCancelled && this.#plan.some(isOpen)) {
      push({
        type: 'plan',
        entries: this.#plan.map((entry) => (isOpen(entry) ? { ...entry, status: 'cancelled' } : entry)),
      });
    }
    if (this.#usage !== undefined) push(this.#usage);
  }

  #announce(call: { callId: string; tool: string; input?: unknown }): void {
    const isNew = !this.#open.has(call.callId);
    this.#open.add(call.callId);
    const { status, ...update }: CallUpdate = announceCall(call, this.#options);
    this.#options.push(isNew ? { ...update, status: 'pending', isNew } : update);
  }

  #endReply(message: AssistantMessage): void {
    const { push, journal, contextTokens: size } = this.#options;
    const words = toReplyText(message);
    // A planner need not stream: show the text that has not been shown yet.
    const rest = words.startsWith(this.#shown) ? words.slice(this.#shown.length) : '';
    if (rest !== '') push({ type: 'text', messageId: journal.nextId, text: rest });
    for (const part of message.content) if (part.type === 'call') this.#announce(part);
    if (message.usage !== undefined && size !== undefined) {
      this.#usage = { type: 'usage', used: message.usage.inputTokens + message.usage.outputTokens, size };
      if (message.stopReason === 'tool-use') push(this.#usage);
    }
  }

  #showPlan(plan: readonly PlanEntry[] | undefined): void {
    if (plan === undefined) return;
    this.#plan = plan;
    this.#options.push({ type: 'plan', entries: plan });
  }
}

function isOpen({ status }: PlanEntry): boolean {
  return status === 'pending' || status === 'in_progress';
}

import { describeError } from '@whoa/core/internal';
import { asText } from '../messages/as-json.ts';
import { failed, succeeded } from '../messages/reported-result.ts';
import type { AiSdkMessage } from './call-sites.ts';

/** A step as `onStepFinish` gets it. */
export interface FinishedStep {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly response: { readonly messages: readonly AiSdkMessage[] };
}

type Fields = Record<string, unknown>;

/**
 * Collects the messages that a turn adds: those of a finished step as the loop made them, and what the stream showed of a
 * step that was cut off. The results of its calls are in the records.
 */
export class AddedMessages {
  readonly #steps: (readonly AiSdkMessage[])[] = [];
  #content: Fields[] = [];
  #refused: Fields[] = [];
  /** Text and thinking that has not ended. */
  readonly #open = new Map<string, Fields>();
  #isBegun = false;
  /** Whether the last step is as the stream showed it. */
  #isShown = false;

  get messages(): AiSdkMessage[] {
    return [...this.#steps.flat(), ...this.#shown()];
  }

  /** Adds what the loop has added before its first step: the results of approved calls. */
  begin(sent: readonly AiSdkMessage[], last: AiSdkMessage | undefined): void {
    if (!this.#isBegun && last !== undefined && sent.includes(last))
      this.#steps.push(sent.slice(sent.lastIndexOf(last) + 1));
    this.#isBegun = true;
  }

  /** Adds a finished step. In `ai` 5 and 6 it has the messages of the steps before it, too. */
  finish({ content, response: { messages } }: FinishedStep): void {
    if (this.#isShown) this.#steps.pop();
    this.#isShown = false;
    this.#reset();
    const isEmpty = content.every(({ type, text }) => type === 'source' || text === '');
    if (!isEmpty) this.#steps.push(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant')));
  }

  /** Reads a part of the stream of `streamText`. */
  read({ type, id, text, toolCallId, toolName, providerMetadata, ...part }: Fields): void {
    const options = providerMetadata === undefined ? {} : { providerOptions: providerMetadata };
    const ran = part['providerExecuted'] === true && { providerExecuted: true };
    const [kind, phase] = asText(type).split('-');
    const name = `${kind} ${asText(id)}`;
    const open = this.#open.get(name);
    if (open !== undefined) Object.assign(open, options, { text: `${asText(open['text'])}${asText(text ?? '')}` });
    if (phase === 'end') this.#open.delete(name);
    if (type === 'text-start' || type === 'reasoning-start') {
      this.#content.push({ type: kind, text: '', ...options });
      this.#open.set(name, this.#content.at(-1)!);
    } else if (type === 'tool-call') {
      this.#content.push({ type, toolCallId, toolName, input: part['input'], ...ran, ...options });
      const output = failed(describeError(part['error']));
      if (part['invalid'] === true) this.#refused.push({ type: 'tool-result', toolCallId, toolName, output });
    } else if (type === 'tool-result' && ran) {
      this.#content.push({ type, toolCallId, toolName, output: succeeded(part['output']), ...options });
    } else if (type === 'tool-approval-request' && part['isAutomatic'] !== true) {
      // Where the loop answers by itself, no one is asked.
      const { approvalId, signature, toolCall } = part;
      const asked = (toolCall as { readonly toolCallId: string }).toolCallId;
      this.#content.push({ type, approvalId, toolCallId: asked, ...(signature !== undefined && { signature }) });
    } else if (type === 'steering-message') {
      this.#steps.push([part['message'] as AiSdkMessage]);
    } else if (type === 'start-step') {
      this.#reset();
    } else if (type === 'finish-step') {
      this.#steps.push(this.#shown());
      this.#isShown = true;
      this.#reset();
    }
  }

  #reset(): void {
    [this.#content, this.#refused] = [[], []];
    this.#open.clear();
  }

  /** Thinking that was cut off has no proof, so it is left out. */
  #shown(): AiSdkMessage[] {
    const open = new Set(this.#open.values());
    const content = this.#content.filter((part) => part['type'] !== 'reasoning' || !open.has(part));
    const messages = [
      { role: 'assistant', content },
      { role: 'tool', content: this.#refused },
    ];
    return messages.filter((message) => message.content.length > 0);
  }
}

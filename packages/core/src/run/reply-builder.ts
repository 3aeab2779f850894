import type { AssistantMessage, AssistantPart, StopReason, Usage } from './message.ts';
import type { ModelPart } from './model.ts';

/** Puts a streamed reply together. What it has is a valid message at any moment. */
export class ReplyBuilder {
  readonly #parts: AssistantPart[] = [];
  #usage: { inputTokens?: number; outputTokens?: number } | undefined;
  #stopReason: StopReason | undefined;
  #isThinking = false;

  /** Whether the provider said that the reply is over. */
  get isFinished(): boolean {
    return this.#stopReason !== undefined;
  }

  add(part: ModelPart): void {
    const last = this.#parts.at(-1);
    switch (part.type) {
      case 'text':
        if (last?.type === 'text') this.#replaceLast({ ...last, text: last.text + part.text });
        else this.#parts.push({ type: 'text', text: part.text });
        break;
      case 'thinking':
        if (last?.type === 'thinking' && this.#isThinking) {
          this.#replaceLast({ ...last, text: last.text + part.text });
        } else this.#parts.push({ type: 'thinking', text: part.text });
        this.#isThinking = true;
        break;
      case 'thinking-end':
        if (part.signature !== undefined) this.#sign(part.signature);
        this.#isThinking = false;
        break;
      case 'call-end':
        this.#parts.push({ type: 'call', callId: part.callId, tool: part.tool, input: part.input });
        break;
      case 'usage':
        this.#usage = { ...this.#usage, ...definedOnly(part) };
        break;
      case 'finish':
        this.#stopReason = part.stopReason;
        break;
      // A call that is not complete leaves no trace.
      case 'call-start':
      case 'call-arguments':
        break;
    }
  }

  /** The reply as the provider finished it. */
  finished(): AssistantMessage {
    const calls = this.#parts.some(({ type }) => type === 'call');
    return this.#message(this.#parts, calls ? 'tool_use' : (this.#stopReason ?? 'stop'), true);
  }

  /** The reply as far as it came. Its calls are left out: a reply that was cut off asked for nothing. */
  cut(stopReason: 'aborted' | 'error'): AssistantMessage {
    return this.#message(
      this.#parts.filter(({ type }) => type !== 'call'),
      stopReason,
      false,
    );
  }

  #message(content: readonly AssistantPart[], stopReason: StopReason, complete: boolean): AssistantMessage {
    const usage: Usage | undefined =
      this.#usage || !complete
        ? { inputTokens: this.#usage?.inputTokens ?? 0, outputTokens: this.#usage?.outputTokens ?? 0, complete }
        : undefined;
    return { role: 'assistant', content, stopReason, ...(usage && { usage }) };
  }

  #sign(signature: string): void {
    const last = this.#parts.at(-1);
    // Redacted thinking comes as a signature without words.
    if (last?.type === 'thinking' && this.#isThinking) this.#replaceLast({ ...last, signature });
    else this.#parts.push({ type: 'thinking', text: '', signature });
  }

  #replaceLast(part: AssistantPart): void {
    this.#parts[this.#parts.length - 1] = part;
  }
}

function definedOnly({ inputTokens, outputTokens }: { inputTokens?: number; outputTokens?: number }) {
  return { ...(inputTokens !== undefined && { inputTokens }), ...(outputTokens !== undefined && { outputTokens }) };
}

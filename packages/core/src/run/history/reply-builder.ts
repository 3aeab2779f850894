import type { ModelPart } from '../reply/model.ts';
import type { AssistantMessage, AssistantPart, ReplySource, StopReason, Usage } from './message.ts';

type Counts = Partial<Omit<Usage, 'isComplete'>>;

/** Builds a message from a streamed reply. It is a valid message at any moment. */
export class ReplyBuilder {
  readonly #source: ReplySource;
  readonly #parts: AssistantPart[] = [];
  #usage: Counts | undefined;
  #stopReason: StopReason | undefined;
  #isThinking = false;
  #hasStarted = false;

  constructor({ provider, api, model }: ReplySource = {}) {
    this.#source = { ...(provider && { provider }), ...(api && { api }), ...(model && { model }) };
  }

  /** Whether the provider said that the reply has ended. */
  get isFinished(): boolean {
    return this.#stopReason !== undefined;
  }

  get stopReason(): StopReason | undefined {
    return this.#stopReason;
  }

  /** Whether any part has arrived. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  add(part: ModelPart): void {
    this.#hasStarted = true;
    const last = this.#parts.at(-1);
    switch (part.type) {
      case 'text':
        if (last?.type === 'text') this.#replaceLast({ ...last, text: last.text + part.text });
        else this.#parts.push({ type: 'text', text: part.text });
        break;
      case 'thinking':
        if (last?.type === 'thinking' && this.#isThinking) this.#replaceLast({ ...last, text: last.text + part.text });
        else this.#parts.push({ type: 'thinking', text: part.text });
        this.#isThinking = true;
        break;
      case 'thinking-end':
        if (part.signature !== undefined) this.#sign(part.signature);
        this.#isThinking = false;
        break;
      case 'call-end':
        this.#parts.push(toCall(part));
        break;
      case 'usage':
        this.#usage = { ...this.#usage, ...toCounts(part) };
        break;
      case 'finish':
        this.#stopReason = part.stopReason;
        break;
      // An incomplete call leaves no trace.
      case 'call-start':
      case 'call-arguments':
        break;
    }
  }

  /** The reply as the provider finished it. */
  finished(): AssistantMessage {
    const calls = this.#parts.some(({ type }) => type === 'call');
    return this.#message(this.#parts, calls ? 'tool-use' : (this.#stopReason ?? 'stop'), true);
  }

  /** The reply so far. Its calls are left out: a reply that was cut off requests nothing. */
  cut(stopReason: 'aborted' | 'error'): AssistantMessage {
    const withoutCalls = this.#parts.filter(({ type }) => type !== 'call');
    return this.#message(withoutCalls, stopReason, false);
  }

  #message(content: readonly AssistantPart[], stopReason: StopReason, isComplete: boolean): AssistantMessage {
    const usage: Usage | undefined =
      this.#usage || !isComplete
        ? {
            inputTokens: this.#usage?.inputTokens ?? 0,
            ...(this.#usage?.cachedInputTokens && { cachedInputTokens: this.#usage.cachedInputTokens }),
            outputTokens: this.#usage?.outputTokens ?? 0,
            isComplete,
          }
        : undefined;
    return { role: 'assistant', content, stopReason, ...(usage && { usage }), ...this.#source };
  }

  #sign(signature: string): void {
    const last = this.#parts.at(-1);
    // Redacted thinking arrives as a signature without text.
    if (last?.type === 'thinking' && this.#isThinking) this.#replaceLast({ ...last, signature });
    else this.#parts.push({ type: 'thinking', text: '', signature });
  }

  #replaceLast(part: AssistantPart): void {
    this.#parts[this.#parts.length - 1] = part;
  }
}

function toCall({ callId, providerId, tool, input }: ModelPart & { type: 'call-end' }): AssistantPart {
  return { type: 'call', callId, ...(providerId !== undefined && { providerId }), tool, input };
}

/** Keeps only valid counts: a provider that reports nonsense has reported nothing. */
function toCounts({ inputTokens, cachedInputTokens, outputTokens }: Counts): Counts {
  return {
    ...(isCount(inputTokens) && { inputTokens }),
    ...(isCount(cachedInputTokens) && { cachedInputTokens }),
    ...(isCount(outputTokens) && { outputTokens }),
  };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}

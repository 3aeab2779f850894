import type { Interrupt } from '@ag-ui/core';
import type { Usage } from '@whoa/core';
import type { UIMessageChunk } from 'ai';
import { joinText } from '../ui/ui-messages.ts';
import type { AgUiEvent, AgUiMessage } from './ag-ui-messages.ts';
import { MessageLog } from './message-log.ts';

/** The version of AG-UI that is written: the first in which a run can end as cancelled. */
const PROTOCOL_VERSION = '1.0';

export interface AgUiRun {
  readonly threadId: string;
  readonly runId: string;
  /** The prefix of the ids that the run creates. */
  readonly taskId: string;
  /** The messages of the thread that the reader has. */
  readonly before: readonly AgUiMessage[];
  /** The reader does not have them yet: they are sent first. */
  readonly isJoining: boolean;
  /** Questions that were answered before: they do not interrupt the run. */
  readonly answered: ReadonlySet<string>;
  /** Questions that the run answers: earlier runs have sent everything up to them. */
  readonly resumed: ReadonlySet<string>;
  /** Returns the usage of the run; called at its end. */
  readonly usage: () => Promise<Usage | undefined>;
}

type TextKind = 'text' | 'reasoning';
type Chunk<Type extends UIMessageChunk['type']> = Extract<UIMessageChunk, { type: Type }>;

/** Converts the chunks of one reply to the events of one AG-UI run. Everything it opens is closed before the end. */
export class AgUiTranslator {
  readonly #run: AgUiRun;
  readonly #log: MessageLog;
  /** Messages whose text is being streamed, by the ids of their chunks. */
  readonly #words = new Map<string, { readonly kind: TextKind; readonly messageId: string }>();
  /** Calls whose input is being streamed. */
  readonly #calls = new Map<string, { hasInput: boolean }>();
  readonly #ended = new Set<string>();
  #names = 0;
  #steps = 0;
  #step: string | undefined;
  #error: string | undefined;

  constructor(run: AgUiRun) {
    this.#run = run;
    this.#log = new MessageLog(run.before);
  }

  /** Returns all events of a run. A stream that breaks off leaves the run open, as the protocol requires. */
  async *translate(chunks: AsyncIterable<UIMessageChunk>): AsyncGenerator<AgUiEvent, undefined> {
    const { threadId, runId, isJoining, before, answered, resumed } = this.#run;
    yield { type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION };
    if (isJoining) yield { type: 'MESSAGES_SNAPSHOT', messages: [...before] };
    const unseen = new Set(resumed);
    let interrupts: Interrupt[] = [];
    for await (const chunk of chunks) {
      if (chunk.type === 'finish' || chunk.type === 'abort') {
        yield* this.#close();
        yield await this.#end(chunk, interrupts);
        return undefined;
      }
      const events = this.#toEvents(chunk);
      if (unseen.size === 0) yield* events;
      if (chunk.type === 'tool-approval-response') interrupts = interrupts.filter(({ id }) => id !== chunk.approvalId);
      const asked = findInterrupt(chunk);
      if (asked === undefined) continue;
      // Close what is open: the earlier run has already closed it for the reader.
      if (unseen.delete(asked.id) && unseen.size === 0) this.#close();
      // A call that runs in the page ends the run like any other: the page sends the result.
      if (asked.reason === IN_PAGE) continue;
      if (!resumed.has(asked.id) && !answered.has(asked.id)) interrupts.push(asked);
      // The application's own loop ends by itself, when the other calls of the turn have ended too.
      if (unseen.size > 0 || interrupts.length === 0 || asked.metadata === undefined) continue;
      yield* this.#close();
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'interrupt', interrupts } };
      return undefined;
    }
    return undefined;
  }

  async #end(chunk: Chunk<'finish' | 'abort'>, asked: readonly Interrupt[]): Promise<AgUiEvent> {
    const { threadId, runId } = this.#run;
    const counted = await this.#run.usage();
    const { inputTokens = 0, outputTokens = 0 } = counted ?? {};
    const usage = counted && { usage: [{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens }] };
    if (this.#error !== undefined) return { type: 'RUN_ERROR', message: this.#error, ...usage };
    const ended = { type: 'RUN_FINISHED', threadId, runId, ...usage } as const;
    if (chunk.type === 'abort') {
      const metadata = chunk.reason !== undefined && { metadata: { reason: chunk.reason } };
      return { ...ended, outcome: { type: 'cancelled' }, ...metadata };
    }
    const interrupts = asked.filter(({ toolCallId = '' }) => !this.#ended.has(toolCallId));
    return { ...ended, outcome: interrupts.length > 0 ? { type: 'interrupt', interrupts } : { type: 'success' } };
  }

  #toEvents(chunk: UIMessageChunk): AgUiEvent[] {
    switch (chunk.type) {
      case 'start':
        return [];
      case 'start-step':
        return this.#startStep();
      case 'finish-step':
        return this.#finishStep();
      case 'reset-step':
        return [...this.#closeText(), ...this.#endInputs(), this.#log.reset()];
      case 'text-start':
        return this.#startText(chunk.id, 'text');
      case 'reasoning-start':
        return this.#startText(chunk.id, 'reasoning');
      case 'text-delta':
      case 'reasoning-delta':
        return this.#addText(chunk);
      case 'text-end':
      case 'reasoning-end':
        return this.#endWords(chunk.id);
      case 'tool-input-start':
        return this.#startCall(chunk.toolCallId, chunk.toolName);
      case 'tool-input-delta':
        return this.#addInput(chunk.toolCallId, chunk.inputTextDelta);
      case 'tool-input-available':
        return this.#endInput(chunk);
      case 'tool-input-error':
        return [...this.#endInput(chunk), ...this.#endCall(chunk.toolCallId, chunk.errorText)];
      case 'tool-output-available':
        return chunk.preliminary === true ? [] : this.#endCall(chunk.toolCallId, toText(chunk.output));
      case 'tool-output-error':
        return this.#endCall(chunk.toolCallId, chunk.errorText);
      case 'tool-output-denied':
        return this.#endCall(chunk.toolCallId, 'Denied.');
      case 'steering-message':
        return this.#tellSteering(chunk);
      case 'error':
        this.#error = chunk.errorText;
        return [];
      default:
        return [toCustomEvent(chunk)];
    }
  }

  #startStep(): AgUiEvent[] {
    const before = this.#finishStep();
    this.#step = `step-${++this.#steps}`;
    this.#log.startStep();
    return [...before, { type: 'STEP_STARTED', stepName: this.#step }];
  }

  #finishStep(): AgUiEvent[] {
    const stepName = this.#step;
    this.#step = undefined;
    return stepName === undefined ? [] : [{ type: 'STEP_FINISHED', stepName }];
  }

  #startText(id: string, kind: TextKind): AgUiEvent[] {
    const before = this.#endWords(id);
    const messageId = this.#newName();
    this.#words.set(id, { kind, messageId });
    this.#log.say(messageId, kind === 'text' ? 'assistant' : 'reasoning');
    if (kind === 'text') return [...before, { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' }];
    return [
      ...before,
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    ];
  }

  #addText({ type, id, delta }: Chunk<'text-delta' | 'reasoning-delta'>): AgUiEvent[] {
    const kind = type === 'text-delta' ? 'text' : 'reasoning';
    const before = this.#words.has(id) ? [] : this.#startText(id, kind);
    const { messageId } = this.#words.get(id)!;
    this.#log.add(messageId, delta);
    return [
      ...before,
      { type: kind === 'text' ? 'TEXT_MESSAGE_CONTENT' : 'REASONING_MESSAGE_CONTENT', messageId, delta },
    ];
  }

  #endWords(id: string): AgUiEvent[] {
    const open = this.#words.get(id);
    if (open === undefined) return [];
    this.#words.delete(id);
    const { kind, messageId } = open;
    if (kind === 'text') return [{ type: 'TEXT_MESSAGE_END', messageId }];
    return [
      { type: 'REASONING_MESSAGE_END', messageId },
      { type: 'REASONING_END', messageId },
    ];
  }

  #startCall(toolCallId: string, toolCallName: string): AgUiEvent[] {
    if (this.#calls.has(toolCallId) || this.#log.hasCall(toolCallId)) return [];
    this.#calls.set(toolCallId, { hasInput: false });
    const parentMessageId = this.#log.call(toolCallId, toolCallName, this.#newName());
    return [{ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId }];
  }

  #addInput(toolCallId: string, delta: string): AgUiEvent[] {
    const call = this.#calls.get(toolCallId);
    if (call === undefined) return [];
    call.hasInput = true;
    this.#log.addInput(toolCallId, delta);
    return [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }];
  }

  #endInput({ toolCallId, toolName, input }: Chunk<'tool-input-available' | 'tool-input-error'>): AgUiEvent[] {
    const events = this.#startCall(toolCallId, toolName);
    const call = this.#calls.get(toolCallId);
    if (call === undefined) return [];
    if (!call.hasInput) events.push(...this.#addInput(toolCallId, JSON.stringify(input) ?? '{}'));
    this.#calls.delete(toolCallId);
    return [...events, { type: 'TOOL_CALL_END', toolCallId }];
  }

  #endCall(toolCallId: string, content: string): AgUiEvent[] {
    // Skip the result of a call that was never sent to the reader, or that the reader has sent.
    const isSent = this.#run.before.some((one) => one.role === 'tool' && one.toolCallId === toolCallId);
    if (isSent || this.#ended.has(toolCallId) || !this.#log.hasCall(toolCallId)) return [];
    this.#ended.add(toolCallId);
    const before = this.#calls.delete(toolCallId) ? [{ type: 'TOOL_CALL_END' as const, toolCallId }] : [];
    const messageId = this.#newName();
    this.#log.answer(messageId, toolCallId, content);
    return [...before, { type: 'TOOL_CALL_RESULT', messageId, toolCallId, role: 'tool', content }];
  }

  #tellSteering({ id, parts }: Chunk<'steering-message'>): AgUiEvent[] {
    const delta = joinText(parts);
    this.#log.say(id, 'user');
    this.#log.add(id, delta);
    return [
      { type: 'TEXT_MESSAGE_START', messageId: id, role: 'user' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta },
      { type: 'TEXT_MESSAGE_END', messageId: id },
    ];
  }

  #closeText(): AgUiEvent[] {
    return [...this.#words.keys()].flatMap((id) => this.#endWords(id));
  }

  #endInputs(): AgUiEvent[] {
    const open = [...this.#calls.keys()];
    this.#calls.clear();
    return open.map((toolCallId) => ({ type: 'TOOL_CALL_END', toolCallId }));
  }

  #close(): AgUiEvent[] {
    return [...this.#closeText(), ...this.#endInputs(), ...this.#finishStep()];
  }

  #newName(): string {
    // Give a resumed run its own ids: on replay, the same text may come in other pieces.
    const [first] = this.#run.resumed;
    return `${first ?? this.#run.taskId}-m${++this.#names}`;
  }
}

const IN_PAGE = 'client';

interface AskedForResult {
  readonly kind: 'answer' | 'client';
  readonly toolCallId: string;
  readonly question: unknown;
  readonly schema?: Record<string, unknown>;
}

/** The schema of an answer to a question. */
const ANSWER = {
  type: 'object',
  properties: { approved: { type: 'boolean' }, why: { type: 'string' }, remember: { type: 'boolean' } },
  required: ['approved'],
};

/** Returns the question of a chunk, if a resumed run can answer it. */
function findInterrupt(chunk: UIMessageChunk): Interrupt | undefined {
  if (chunk.type === 'data-question') {
    const { kind, toolCallId, question, schema } = (chunk as { data: AskedForResult }).data;
    const reason = kind === 'client' ? IN_PAGE : 'input_required';
    return { id: chunk.id!, reason, toolCallId, responseSchema: schema ?? {}, metadata: { question } };
  }
  if (chunk.type !== 'tool-approval-request' || chunk.isAutomatic === true) return undefined;
  const { approvalId: id, toolCallId, approvalDescriptor: question } = chunk;
  const metadata = question !== undefined && { metadata: { question } };
  return { id, reason: 'tool_call', toolCallId, responseSchema: ANSWER, ...metadata };
}

function toText(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '');
}

/** Wraps what AG-UI has no event for: questions, the stop report, sources, files, and what the application adds. */
function toCustomEvent(chunk: UIMessageChunk): AgUiEvent {
  const { type, ...rest } = chunk;
  if (type.startsWith('data-'))
    return { type: 'CUSTOM', name: type.slice('data-'.length), value: (rest as { data?: unknown }).data ?? null };
  return { type: 'CUSTOM', name: type, value: rest };
}

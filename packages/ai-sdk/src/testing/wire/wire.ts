import type { Answer, Fault, Frame } from '../script.ts';
import type { ProviderRefusal, StrictOptions } from '../strict/strict.ts';

/** The protocol of a request to a provider. */
export type WireFormat = 'chat' | 'responses' | 'anthropic';

export interface FrameContext {
  /** Names this reply; the ids in it are made from it. */
  readonly id: string;
  readonly model: string;
  /** Told of every proof of thinking that is given out. */
  readonly issue: (proof: string) => void;
}

/** How one vendor's API speaks. */
export interface Wire {
  readonly format: WireFormat;
  /** How the path of its requests ends. */
  readonly path: string;
  /** An answer as the events of a stream, in order. */
  frames(answer: Answer, context: FrameContext): Iterable<Frame | Fault>;
  /** The body of an answer that is no stream. */
  failure(status: number, refusal: Omit<ProviderRefusal, 'rule'>): unknown;
  /** What this vendor says in mid-stream when it cannot go on. */
  overloaded(): Frame;
  validate(body: unknown, options?: StrictOptions): ProviderRefusal | undefined;
}

/** An event as `text/event-stream` has it. */
export function frame(data: unknown, options: { event?: string; words?: string } = {}): Frame {
  const { event, words } = options;
  const name = event === undefined ? '' : `event: ${event}\n`;
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return { data: `${name}data: ${text}\n\n`, ...(words !== undefined && { words }) };
}

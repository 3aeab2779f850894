import type { Fault, Frame, ScriptedResponse } from '../script.ts';
import type { ProviderRefusal, StrictOptions } from '../strict/strict.ts';

/** The protocol of a request to a provider. */
export type WireFormat = 'chat' | 'responses' | 'anthropic';

export interface FrameContext {
  /** The id of this reply; the ids in it are derived from it. */
  readonly id: string;
  readonly model: string;
  /** Called with every proof of thinking that is issued. */
  readonly issue: (proof: string) => void;
}

/** The API format of one vendor. */
export interface Wire {
  readonly format: WireFormat;
  /** The end of the path of its requests. */
  readonly path: string;
  /** Returns an answer as the events of a stream, in order. */
  frames(answer: ScriptedResponse, context: FrameContext): Iterable<Frame | Fault>;
  /** The body of an error response. */
  failure(status: number, refusal: Omit<ProviderRefusal, 'rule'>): unknown;
  /** This vendor's error event in mid-stream. */
  overloaded(): Frame;
  validate(body: unknown, options?: StrictOptions): ProviderRefusal | undefined;
}

/** Formats an event as `text/event-stream`. */
export function frame(data: unknown, options: { event?: string; words?: string } = {}): Frame {
  const { event, words } = options;
  const name = event === undefined ? '' : `event: ${event}\n`;
  const text = typeof data === 'string' ? data : JSON.stringify(data);
  return { data: `${name}data: ${text}\n\n`, ...(words !== undefined && { words }) };
}

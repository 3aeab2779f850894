/** A call on the way from a task's run to a run inside it. */
interface OuterCall {
  readonly callId: string;
  readonly tool: string;
}

/** The calls that something is inside of, outermost first; none for the task's own run. */
export type CallPath = readonly OuterCall[];

interface Nesting {
  readonly type: string;
  readonly callId?: string;
  readonly tool?: string;
  readonly event?: Nesting;
}

/** Returns the id of a call as its question and an undo have it: with the calls that it is inside of. */
export function toPathId(path: CallPath, callId: string): string {
  return path.length === 0 ? callId : `${path.map((outer) => outer.callId).join('/')}/${callId}`;
}

/** Puts an event of a run into the calls that the run is inside of. */
export function wrapEvent<Event extends object>(path: CallPath, event: Event): object {
  return path.reduceRight<object>((inner, call) => ({ type: 'call-event', ...call, event: inner }), event);
}

/** Returns the event itself, and the calls that it is inside of. */
export function unwrapEvent<Event extends Nesting>(event: Event): { readonly path: CallPath; readonly inner: Event } {
  const path: OuterCall[] = [];
  let inner: Nesting = event;
  while (inner.type === 'call-event' && inner.event !== undefined && typeof inner.event.type === 'string') {
    path.push({ callId: inner.callId ?? '', tool: inner.tool ?? '' });
    inner = inner.event;
  }
  return { path, inner: inner as Event };
}

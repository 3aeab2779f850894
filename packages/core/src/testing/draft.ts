import type { JournalSeen } from './history.ts';

/** The parts of an event that show whether another event contains it. */
interface Event {
  readonly type?: string;
  readonly callId?: string;
  readonly text?: string;
  readonly result?: { readonly callId?: string };
  readonly message?: { readonly content?: readonly { readonly type: string; readonly text?: string }[] };
  /** The event of a run inside a call. */
  readonly event?: Event;
}

/** Whether a removed entry was a draft, and a later entry contains its content. */
export function isHeldLater(gone: JournalSeen, entries: readonly JournalSeen[]): boolean {
  const draft = innermost(gone.event as Event);
  return entries.some(({ position, event }) => position > gone.position && holds(innermost(event as Event), draft));
}

function holds(later: Event, draft: Event): boolean {
  switch (draft.type) {
    case 'text':
      return later.type === 'turn-end' && toReplyText(later).includes(draft.text ?? '');
    case 'thinking':
      return later.type === 'turn-end';
    case 'call-update':
      return (
        (later.type === 'call-update' && later.callId === draft.callId) ||
        (later.type === 'call-end' && later.result?.callId === draft.callId)
      );
    // The newest of these contains everything from the older ones.
    case 'history':
    case 'journal-truncated':
      return later.type === draft.type;
    default:
      return false;
  }
}

function innermost(event: Event): Event {
  return event.type === 'call-event' && event.event !== undefined ? innermost(event.event) : event;
}

function toReplyText({ message }: Event): string {
  return (message?.content ?? []).map(({ type, text }) => (type === 'text' ? text : '')).join('');
}

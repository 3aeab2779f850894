import type { JournalEvent } from '@whoa/tasks';
import type { UIMessageChunk } from 'ai';
import type { ReplyEvent } from './chunk-writer.ts';

type Event = JournalEvent | ReplyEvent;

/** Returns the events of the turn that has not ended. */
export function findOpenTurn(journal: readonly Event[]): readonly Event[] {
  const turn = journal.findLastIndex(({ type }) => type === 'turn-start' || type === 'turn-end');
  return journal[turn]?.type === 'turn-start' ? journal.slice(turn) : [];
}

/** Begins the last step of the application's own loop again. */
export function passAgain(journal: readonly Event[]): UIMessageChunk[] {
  const passed = journal.flatMap((event) => (event.type === 'ui-chunks' ? event.chunks : []));
  const step = passed.findLastIndex(({ type }) => type === 'start-step') + 1;
  return step === 0 ? [] : [{ type: 'reset-step' }, ...passed.slice(step)];
}

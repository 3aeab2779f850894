import { expect, test } from 'vitest';
import { isFinalStatus, nextStatus, type StatusAction, type TaskStatus } from './status.ts';

const ACTIONS: readonly StatusAction[] = ['claim', 'release', 'cancel', 'success', 'failed', 'cancelled'];

/** Rows are statuses, columns are `MOVES`; a word with `!` is a refusal. */
const TABLE: Record<TaskStatus, string> = {
  init: 'running !not-running cancelled !not-running !not-running !not-running',
  running: '!held init cancelling success failed cancelled',
  cancelling: 'cancelling cancelling cancelling cancelled cancelled cancelled',
  success: '!final !final !final !final !final !final',
  failed: '!final !final !final !final !final !final',
  cancelled: '!final !final !final !final !final !final',
};

for (const [status, row] of Object.entries(TABLE) as [TaskStatus, string][]) {
  for (const [column, word] of row.split(' ').entries()) {
    const asked = ACTIONS[column]!;
    const refused = word.startsWith('!');
    test(`${asked} on a task that is ${status} ${refused ? `is refused: ${word.slice(1)}` : `makes it ${word}`}`, () => {
      const answer = nextStatus(status, asked);
      expect(answer).toEqual(
        refused ? { moved: false, refused: word.slice(1), status } : { moved: true, status: word },
      );
    });
  }
}

test('only success, failed and cancelled are ends', () => {
  const final = (Object.keys(TABLE) as TaskStatus[]).filter(isFinalStatus);
  expect(final).toEqual(['success', 'failed', 'cancelled']);
});

test('nothing but cancelled can follow cancelling', () => {
  const reachable = ACTIONS.map((asked) => nextStatus('cancelling', asked).status);
  expect(new Set(reachable)).toEqual(new Set(['cancelling', 'cancelled']));
});

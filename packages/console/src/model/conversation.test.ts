import type { TaskSummary } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { describeFate, findLead } from './conversation.ts';
import { shownStatus } from './shown-status.ts';

const task = (id: string, more: object): TaskSummary => ({ id, status: 'running', crashes: 0, ...more }) as TaskSummary;
const ended = (id: string, kind: string, more: object = {}): TaskSummary =>
  task(id, { status: 'cancelled', endedAt: 5, outcome: { reason: { kind, at: 5 } }, ...more });

const running = task('run', { stage: 'held', startedAt: 1 });
const waits = task('waits', { status: 'init', stage: 'queued' });
const joins = task('joins', { status: 'init', stage: 'delayed', policy: 'steer' });
const steered = ended('steered', 'steered', { steered: 'run' });

test.each<[string, TaskSummary[], string | undefined]>([
  ['one that runs, behind newer messages that were delivered or wait', [joins, waits, steered, running], 'run'],
  ['one that waits for a worker', [steered, task('ready', { status: 'init', stage: 'ready' })], 'ready'],
  [
    'the one that began last, whichever was sent last',
    [ended('b', 'user', { startedAt: 3 }), ended('a', 'user', { startedAt: 4 })],
    'a',
  ],
  ['the newest, if none began', [steered, ended('user', 'user')], 'steered'],
  ['nothing, if there is no task', [], undefined],
])('the task that a conversation is called after: %s', (_, tasks, id) => {
  expect(findLead(tasks)?.id).toBe(id);
});

test('the record of the conversation decides which task is current', () => {
  expect(findLead([running, waits], waits)?.id).toBe('waits');
});

test.each([
  ['steered', steered, 'run', /delivered to a run/],
  [
    'merged',
    ended('m', 'merged', { outcome: { reason: { kind: 'merged', message: 'taken over by waits' } } }),
    'waits',
    /merged/,
  ],
  ['superseded', ended('s', 'superseded'), 'newer', /newer message took its place/],
  ['cancelled', ended('c', 'user'), undefined, /^It was stopped before it began, so it had no effect\.$/],
  ['cancelled', ended('d', 'deadline'), undefined, /stopped before it began, so it had no effect \(deadline\)\.$/],
] as const)('a message that got no run is shown as %s', (status, one, to, words) => {
  const others = [task('newer', { superseded: ['s'] }), waits, running];
  expect(shownStatus(one)).toBe(status);
  expect(describeFate(one, others)).toBeDefined();
  expect(describeFate(one, others)?.words).toMatch(words);
  expect(describeFate(one, others)?.to).toBe(to);
  // A task that this page does not know is not linked.
  if (to !== undefined && to !== 'run') expect(describeFate(one)?.to).toBeUndefined();
});

test('a task that started or may still start has its own run', () => {
  for (const one of [running, waits, ended('a', 'superseded', { startedAt: 2 })])
    expect(describeFate(one)).toBeUndefined();
  expect(shownStatus(ended('a', 'superseded', { startedAt: 2 }))).toBe('cancelled');
});

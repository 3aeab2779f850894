// docs/guides/agents/hooks.md lists every event and where it is emitted. The tables below cannot miss one: they are
// typed by the events.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunEvent } from '@whoa/core';
import { type RuntimeEvent, settings } from '@whoa/core/internal';
import type { RunnerEvent } from '@whoa/tasks';
import { expect, test } from 'vitest';
import type { ConversationEvent } from '../packages/core/src/conversation/events.ts';
import type { CallEvent } from '../packages/core/src/tool/events.ts';

type Listed<Type extends string> = Readonly<Record<Type, true>>;
type StopType = Exclude<RuntimeEvent['type'], CallEvent['type']> | 'call-waiting';

const cancels: Listed<StopType> = { 'cancel-requested': true, 'level-changed': true, 'call-waiting': true };
const calls: Listed<Exclude<CallEvent['type'], StopType>> = {
  'wave-start': true,
  'wave-end': true,
  'approval-requested': true,
  'approval-answered': true,
  'call-start': true,
  'call-update': true,
  'call-event': true,
  'call-end': true,
  'call-ended-late': true,
  'cleanup-error': true,
};
const run: Listed<Exclude<RunEvent['type'], CallEvent['type'] | StopType>> = {
  'run-start': true,
  'turn-start': true,
  'turn-end': true,
  'turn-retry': true,
  text: true,
  thinking: true,
  'call-planned': true,
  'steer-delivered': true,
  spending: true,
  'budget-asked': true,
  'budget-answered': true,
  'history-compacted': true,
  'work-abandoned': true,
  'undo-start': true,
  'undo-end': true,
  'events-skipped': true,
  'run-end': true,
};
const conversation: Listed<Exclude<ConversationEvent['type'], StopType>> = {
  'message-received': true,
  'message-answered': true,
};
const runner: Listed<RunnerEvent['type']> = {
  'task-start': true,
  'task-end': true,
  'task-left': true,
  'checker-error': true,
  'store-error': true,
};

const page = readFileSync(join(import.meta.dirname, '../docs/guides/agents/hooks.md'), 'utf8');

test.each([
  ['A run', run],
  ['Cancels', cancels],
  ['Calls', calls],
  ['A conversation', conversation],
  ['A runner', runner],
])('the page lists every event of "%s", and none that is not', (heading, types) => {
  const section = page.split('\n## ').find((one) => one.startsWith(`${heading}\n`))!;
  const listed = section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .flatMap((line) => [...line.split('|')[1]!.matchAll(/`([a-z-]+)`/g)].map(([, type]) => type!));
  expect(listed.toSorted()).toEqual(Object.keys(types).toSorted());
  for (const type of listed) settings.hooks({ [type]: () => {} }, 'hooks');
});

import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('wide');

/** What could be wrong with what readers see, with a chat that is stopped, and with consent. */
export const plantedInWide: readonly PlantedBug[] = [
  {
    name: 'a returning reader gets everything again',
    ground: 'wide',
    changes: [
      {
        file: 'follow/reader.ts',
        find: 'this.#position = Math.min(this.#options.after, position!);',
        replace: 'this.#position = 0;',
      },
      {
        file: 'follow/reader.ts',
        find: 'const known = Math.max(this.#options.after, this.#position);',
        replace: 'const known = this.#position;',
      },
    ],
  },
  one(
    'a late reader misses earlier events',
    'follow/reader.ts',
    'this.#position = Math.min(this.#options.after, position!);',
    'this.#position = position!;',
  ),
  one(
    'the end is reported before the rest of the journal was read',
    'follow/shared-reading.ts',
    'await this.#readOn(task.position);\n    if (isFinalStatus',
    'if (!isFinalStatus(task.status)) await this.#readOn(task.position);\n    if (isFinalStatus',
  ),
  one(
    'a task that is being cancelled is reported as ended',
    'follow/shared-reading.ts',
    'if (isFinalStatus(task.status)) this.#end = task;',
    "if (isFinalStatus(task.status) || task.status === 'cancelling') this.#end = task;",
  ),
  one(
    'a lost page is not requested again',
    'follow/shared-reading.ts',
    'const end = entries.at(-1)?.position ?? to ?? from;',
    'const end = to ?? entries.at(-1)?.position ?? from;',
  ),
  one(
    'an answer does not wake a parked task',
    'operations/stage.ts',
    "if (task.stage === 'parked') return wake(ordered, moment);",
    '',
  ),
  one(
    'a question stays answered when its call starts',
    'run/recording.ts',
    'const closes = questions.takeCloses(id);',
    'const closes: readonly never[] = [];',
  ),
  one(
    'a call that waits for an answer ends when its worker stops',
    'run/recording.ts',
    'if (isLeftToNext(event, holder)) return;',
    '',
  ),
  one(
    'a second answer replaces the first',
    'operations/answer.ts',
    "if (question.state !== 'open') return toTooLate(question);",
    "if (question.state === 'closed') return toTooLate(question);",
  ),
  one(
    "'always' applies to every task of a worker",
    'run/questions/approvals.ts',
    'createApprovals({ ask, remembered,',
    'createApprovals({ ask, remembered: ((current as never as { all: Map<string, boolean> }).all ??= new Map<string, boolean>()),',
  ),
  one(
    "'never' counts as 'always'",
    'run/questions/task-questions.ts',
    "decision: decision as ApprovalAnswer['decision'],",
    "decision: (decision === 'never' ? 'always' : decision) as ApprovalAnswer['decision'],",
  ),
  one(
    'another tenant may answer',
    'operations/answer.ts',
    'task?.tenant === tenant ? tables.question(owner, id) : undefined',
    'tables.question(owner, id)',
  ),
  one(
    'the newest chat message is answered first',
    'operations/queue.ts',
    'const [successor, ...others] = waiting;',
    'const [successor, ...others] = waiting.toReversed();',
  ),
  one(
    'a stop also ends later messages',
    'operations/queue.ts',
    'if (successor !== undefined) promote(tables.task(successor)!, moment);',
    `if (successor !== undefined && task.stop?.reason.by !== undefined) {
    leaveConversation(endUnstarted(tables.task(successor)!, task.stop.reason, moment), moment);
    return undefined;
  }
  if (successor !== undefined) promote(tables.task(successor)!, moment);`,
  ),
  one(
    'two messages of a chat are answered at the same time',
    'operations/queue.ts',
    "if (current === undefined || admission === 'start') {",
    "if (current === undefined || admission === 'start' || policy === 'queue') {",
  ),
  one(
    'a reply is written into the history of its chat twice',
    'operations/work.ts',
    'tables.addHistory(conversation, newMessages);',
    'tables.addHistory(conversation, [...newMessages, ...newMessages]);',
  ),
  one(
    'a message is shown as read before it is marked as read',
    'run/recording.ts',
    "  'call-end',\n  'history-compacted',",
    "  'call-end',\n  'steer-delivered',\n  'history-compacted',",
  ),
];

import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('wide');

/** What could be wrong with what readers see, with a chat that is stopped, and with consent. */
export const plantedInWide: readonly PlantedBug[] = [
  {
    name: 'a reader that comes back is given everything again',
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
    'a reader that comes late misses what was before it',
    'follow/reader.ts',
    'this.#position = Math.min(this.#options.after, position!);',
    'this.#position = position!;',
  ),
  one(
    'an end is told before the rest of the journal was read',
    'follow/shared-reading.ts',
    'await this.#readOn(task.position);\n    if (isFinalStatus',
    'if (!isFinalStatus(task.status)) await this.#readOn(task.position);\n    if (isFinalStatus',
  ),
  one(
    'a task that is being cancelled is told as ended',
    'follow/shared-reading.ts',
    'if (isFinalStatus(task.status)) this.#end = task;',
    "if (isFinalStatus(task.status) || task.status === 'cancelling') this.#end = task;",
  ),
  one(
    'a page that was lost on the way is not asked for again',
    'follow/shared-reading.ts',
    'const end = entries.at(-1)?.position ?? to ?? from;',
    'const end = to ?? entries.at(-1)?.position ?? from;',
  ),
  one(
    'an answer answers every question that waits',
    'run/approvals.ts',
    'this.#waiting.get(callId)?.(answer);',
    'for (const settle of this.#waiting.values()) settle(answer);',
  ),
  one(
    'always is for every task of a worker',
    'run/approvals.ts',
    'const known = attempts.get(attempt) ?? new TaskQuestions(options);',
    "const known = attempts.get('all') ?? new TaskQuestions(options);\n    attempts.set('all', known);",
  ),
  one(
    'a no with a reason is a yes',
    'run/approvals.ts',
    'const decision = approved === true',
    'const decision = approved !== false',
  ),
  one(
    'a stranger may answer',
    'operations/cancel.ts',
    "const { tables } = moment;\n  const task = tables.task(ref.id);\n  if (task === undefined || task.tenant !== ref.tenant) return { answer: 'unknown' };\n  // Check this first",
    "const { tables } = moment;\n  const task = tables.task(ref.id);\n  if (task === undefined) return { answer: 'unknown' };\n  // Check this first",
  ),
  one(
    'the newest message of a chat is answered first',
    'operations/queue.ts',
    'const [successor, ...others] = waiting;',
    'const [successor, ...others] = waiting.toReversed();',
  ),
  one(
    'a stop ends what comes next, too',
    'operations/queue.ts',
    'if (successor !== undefined) comeNext(tables.task(successor)!, moment);',
    `if (successor !== undefined && task.stop?.reason.by !== undefined) {
    leaveConversation(endUnstarted(tables.task(successor)!, task.stop.reason, moment), moment);
    return undefined;
  }
  if (successor !== undefined) comeNext(tables.task(successor)!, moment);`,
  ),
  one(
    'two messages of a chat are answered at once',
    'operations/queue.ts',
    "if (current === undefined || admission === 'start') {",
    "if (current === undefined || admission === 'start' || policy === 'queue') {",
  ),
  one(
    'a reply is written into the history of its chat twice',
    'operations/work.ts',
    'tables.addHistory(conversation, said);',
    'tables.addHistory(conversation, [...said, ...said]);',
  ),
  one(
    'an attempt that ends late forgets the questions of the next',
    'run/execution.ts',
    'get #attempt(): string {\n',
    'get #attempt(): string {\n    if (this.claim.epoch > 0) return this.claim.id;\n',
  ),
  one(
    'a message is shown as read before it is marked as read',
    'run/agent-work.ts',
    "  'call-end',\n  'history-compacted',",
    "  'call-end',\n  'steer-delivered',\n  'history-compacted',",
  ),
];

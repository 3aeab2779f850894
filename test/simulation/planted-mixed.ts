import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('mixed');

/** Bugs in what readers see, in a chat that is stopped, and in approvals. */
export const plantedInMixed: readonly PlantedBug[] = [
  one(
    'a returning reader gets everything again',
    'follow/reader.ts',
    'this.#text = new LiveText(options.after);',
    'this.#text = new LiveText({});',
  ),
  one(
    'a late reader misses earlier events',
    'follow/reader.ts',
    'this.#hasBegun = true;',
    'this.#hasBegun = true;\n    this.#text = new LiveText({ position: record.position });',
  ),
  one(
    'the end is reported before the rest of the journal was read',
    'follow/shared-reading.ts',
    'if (!isSame || isFinalStatus(record.status)) await',
    'if (!isSame && !isFinalStatus(record.status)) await',
  ),
  one(
    'a task that is being cancelled is reported as ended',
    'follow/shared-reading.ts',
    'if (isFinalStatus(record.status)) this.end = record;',
    "if (isFinalStatus(record.status) || record.status === 'cancelling') this.end = record;",
  ),
  one(
    'a lost page is not requested again',
    'follow/shared-reading.ts',
    'if (this.#text.takeEntries(entries) === undefined) this.#restart();',
    'this.#text.takeEntries(entries);\n      if (position % 3 === 0) return;',
  ),
  one(
    'an answer does not wake a parked task',
    'ledger/operations/stage.ts',
    "if (task.stage === 'parked') return wake(ordered, context);",
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
    'if (isLeftToNext(inner, { id, isAgentCall, holder })) {',
    'if (false as boolean) {',
  ),
  one(
    'a second answer replaces the first',
    'ledger/operations/answer.ts',
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
    'run/questions/answers.ts',
    "decision: decision as ApprovalAnswer['decision'],",
    "decision: (decision === 'never' ? 'always' : decision) as ApprovalAnswer['decision'],",
  ),
  one(
    'an expired question does not wake a parked task',
    'ledger/operations/cancel.ts',
    "return sendOrder(closeOpen(task, 'expired', context), 'command', context);",
    "{ const closed = closeOpen(task, 'expired', context); tables.saveTask(closed); return closed; }",
  ),
  one(
    'a task asks though a message is unread',
    'ledger/operations/questions.ts',
    "if (asks.length > 0 && isUnread) throw new QuestionRefusedError(task.id, 'unread');",
    'void isUnread;',
  ),
  one(
    'an answer counts after its time, if no worker has looked',
    'ledger/operations/answer.ts',
    'const task = applyDue(found, context);',
    'const task = found;',
  ),
  one(
    'a task is parked though its worker has not read an answer',
    'ledger/operations/work.ts',
    "if (own.status !== 'running' || !isRead || open === 0 || pending > 0) {",
    "if (own.status !== 'running' || open + pending === 0) {",
  ),
  one(
    'no answer in time counts as a yes',
    'run/questions/answers.ts',
    "if (answer === undefined) return { decision: 'no', why: describeClosed(closed) };",
    "if (answer === undefined) return { decision: 'yes', why: describeClosed(closed) };",
  ),
  one(
    'the next worker asks again under another id',
    'run/questions/task-questions.ts',
    'const asked = live?.id ?? this.#publish(',
    'const asked = this.#publish(',
  ),
  one(
    'a call that is answered is asked again under another id',
    'run/questions/task-questions.ts',
    'this.#findLive(call.id, kind)?.id ?? (await publish())',
    'await publish()',
  ),
  one(
    'a client call without a result counts as failed',
    'run/questions/answers.ts',
    "if (answer === undefined && kind === 'client') throw new CallOutcomeUnknownError(describeClosed(closed));",
    '',
  ),
  one(
    'a client call whose question is being asked ends when its worker stops',
    'run/recording.ts',
    'questions.mayBeInClient(id)',
    "questions.isAsked(id, 'client')",
  ),
  one(
    'a client call is not started if its task is cancelled in the store',
    'run/recovery/settle-task.ts',
    "call.started || isInClient ? 'unknown' : 'not-started'",
    "'not-started'",
  ),
  one(
    'an answer is the result of every call of its task that waits',
    'run/questions/task-questions.ts',
    'if (isDecided(question)) this.#waiting.get(question.id)?.settle(question);',
    'if (isDecided(question)) for (const one of this.#waiting.values()) one.settle(question);',
  ),
  one(
    'a result leaves its question answered',
    'run/recording.ts',
    "if (path.length === 0 && inner.type === 'call-end') questions.endCall(id);",
    '',
  ),
  one(
    'a late answer is not given the reason',
    'ledger/rules/questions.ts',
    "const why = closed?.why ?? 'answered';",
    "const why = 'ended' as NonNullable<Question['closed']>['why'];",
  ),
  one(
    'another tenant may answer',
    'ledger/operations/answer.ts',
    'found?.tenant === tenant && tables.question(owner, id) !== undefined',
    'found !== undefined && tables.question(owner, id) !== undefined',
  ),
  one(
    'the newest chat message is answered first',
    'ledger/operations/queue.ts',
    'const [successor, ...others] = waiting;',
    'const [successor, ...others] = waiting.toReversed();',
  ),
  one(
    'a stop also ends later messages',
    'ledger/operations/queue.ts',
    'if (successor !== undefined) promote(tables.task(successor)!, context);',
    `if (successor !== undefined && task.stop?.reason.by !== undefined) {
    leaveConversation(endUnstarted(tables.task(successor)!, task.stop.reason, context), context);
    return undefined;
  }
  if (successor !== undefined) promote(tables.task(successor)!, context);`,
  ),
  one(
    'two messages of a chat are answered at the same time',
    'ledger/operations/queue.ts',
    "if (current === undefined || admission === 'start') {",
    "if (current === undefined || admission === 'start' || policy === 'queue') {",
  ),
  one(
    'a reply is written into the history of its chat twice',
    'ledger/operations/work.ts',
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

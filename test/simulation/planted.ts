import { type PlantedBug, plantOn } from './planted-bug.ts';
import { plantedInBus } from './planted-bus.ts';
import { plantedInMixed } from './planted-mixed.ts';
import { plantedInPoison } from './planted-poison.ts';
import { plantedInProvider } from './planted-provider.ts';
import { plantedInUpgrade } from './planted-upgrade.ts';

const one = plantOn('delivery');

/** Bugs in delivery that occurred in one engine or another. */
const plantedInDelivery: readonly PlantedBug[] = [
  one(
    'blind final write',
    'ledger/operations/work.ts',
    'const { status } = nextStatus(task.status, outcome.status);',
    'const status = outcome.status as TaskStatus;',
  ),
  one('no fence', 'ledger/operations/work.ts', 'if (!isOwn || (task.status', 'if (task === undefined || (task.status'),
  one(
    'session and claim not compared, epoch not raised',
    'ledger/operations/work.ts',
    'task?.epoch === epoch && task.session === session && task.claim === claim;',
    'task !== undefined && (task.epoch === epoch || true);',
  ),
  one(
    'a sweep fails what is being cancelled',
    'ledger/operations/session.ts',
    "if (task.status === 'running' && reclaimed.crashes >= LIMITS.maxCrashes) {",
    "if (task.status === 'cancelling' || reclaimed.crashes >= LIMITS.maxCrashes) {",
  ),
  one('a release forgets the cancel', 'ledger/rules/status.ts', "release: 'cancelling',", "release: 'init',"),
  one(
    'a cancel that is accepted is not written',
    'ledger/operations/stop-order.ts',
    "if (task.stage === 'held') sendOrder(stopping, 'cancel', context);",
    "if (task.stage === 'held') void stopping;",
  ),
  one('the last reason wins', 'ledger/operations/stop-order.ts', 'reason: before?.reason ?? reason,', 'reason,'),
  one(
    'an end keeps its place in the conversation',
    'ledger/operations/work.ts',
    'const successor = leaveConversation(ended, context);',
    'const successor = undefined as string | undefined;',
  ),
  one('delayed tasks never become ready', 'ledger/operations/take.ts', 'promoteDue(context);\n', ''),
  one(
    'a ready queue is closed while something is ready in it',
    'ledger/operations/take.ts',
    'if (tables.firstReady(readyQueue) === undefined) tables.closeReadyQueue(readyQueue);',
    'if (tables.firstReady(readyQueue) !== undefined) tables.closeReadyQueue(readyQueue);',
  ),
  one('a ready queue is not opened again', 'ledger/operations/stage.ts', 'tables.openReadyQueue(readyQueue);\n', ''),
  one('a task gets grace repeatedly', 'ledger/operations/contact.ts', '&& !state.isGraceGranted', ''),
  one(
    'a session is never swept',
    'ledger/operations/session.ts',
    'while (first !== undefined && first.expiresAt! <= now && reclaimed < limit)',
    'while (first !== undefined && first.expiresAt! <= now && reclaimed < -limit)',
  ),
  one(
    'a release loses an attempt, and a death two',
    'ledger/rules/transitions.ts',
    'plus: { epoch: 1, crashes: 1 },',
    'plus: { epoch: 1, crashes: 7 },',
  ),
  one(
    'a repeated create makes a new task',
    'ledger/operations/create.ts',
    'if (existing !== undefined) {',
    'if (existing !== undefined && existing.endedAt === undefined && existing.epoch > 99) {',
  ),
  one(
    'a repeated take forgets its tasks',
    'ledger/operations/take.ts',
    "const held = tasks.filter((task) => task.stage === 'held' && task.claim === session.lastTakeClaim);",
    'const held = tasks.filter((task) => task.attempts > 99);',
  ),
  one(
    'an append is written twice',
    'ledger/operations/work.ts',
    'const added = alreadyThere ? [] : events;',
    'const added = events;',
  ),
  one(
    'journal positions decrease',
    'ledger/operations/work.ts',
    'const position = task.position + added.length;',
    'const position = Math.max(1, task.position + added.length - 1);',
  ),
  one(
    'the end of a superseded task is forgotten',
    'ledger/operations/queue.ts',
    'endUnstarted(current, reason, context);\n',
    '',
  ),
  one(
    'waiting tasks are dropped without an end',
    'ledger/operations/queue.ts',
    'for (const id of conversation.waiting) endUnstarted(tables.task(id)!, reason, context);',
    '',
  ),
  one(
    'an ended task is still held',
    'ledger/rules/transitions.ts',
    "none: ['stage', 'stageAt', 'policy', 'hasPendingOrders', 'lostClaim'],",
    "none: ['hasPendingOrders'],",
  ),
  one(
    'a held task is in no session',
    'ledger/operations/take.ts',
    '{ now, session, claim, worker }',
    '{ now, claim, worker }',
  ),
  one(
    'a worker that lost its task continues',
    'run/claim-holder.ts',
    "this.token.cancel({ kind: 'lease-lost', message: error.message }, { mode: { abortMs: 1_000 } });",
    '',
  ),
  one(
    'a worker never sends heartbeats',
    'delivery/session.ts',
    'if (this.isIdle) return false;',
    'if (this.#holders.size >= 0) return false;',
  ),
  {
    name: 'a worker accepts a response for an older session and works on it',
    profile: 'delivery',
    changes: [
      {
        file: 'delivery/worker-session.ts',
        find: 'if (session.isOver) return this.#options.handBack.refuse(tasks);\n',
        replace: '',
      },
      {
        file: 'delivery/session.ts',
        find: 'if (session !== this.id) {\n      holder.onLeaseLost',
        replace: "if (session === '') {\n      holder.onLeaseLost",
      },
    ],
  },
  one(
    'a heartbeat requested during a heartbeat is lost',
    'delivery/session.ts',
    'this.#beating = this.#beatUntilHeard();\n    else this.#beatAgain = true;',
    'this.#beating = this.#beatUntilHeard();',
  ),
  one(
    "a call's intent is not written before it starts",
    'run/recording.ts',
    'await journal.flushWhole();\n    }\n    // Check again',
    '}\n    // Check again',
  ),
  one(
    'the journal is written although the claim is known to be lost',
    'run/journal/journal.ts',
    'if (this.#lost !== undefined) return undefined;\n        const texts',
    'const texts',
  ),
  one(
    "a worker's last write is not flushed",
    'run/execution.ts',
    'await holder.journal.flush();\n      const status',
    'const status',
  ),
  one(
    "a task's end is reported although it was not written",
    'run/execution.ts',
    'return (await store.finish(claim, outcome)).status;',
    'store.finish(claim, outcome).catch(() => {}); return outcome.status;',
  ),
  one(
    'a session is reused after its end',
    'delivery/worker-session.ts',
    'new Session(this.#newId(),',
    'new Session(this.#current?.id ?? this.#newId(),',
  ),
  one(
    'a task is freed without raising its epoch',
    'ledger/rules/transitions.ts',
    'plus: { epoch: 1, crashes: 1 },',
    'plus: { crashes: 1 },',
  ),
  one(
    'an order is confirmed by the wrong number',
    'ledger/operations/session.ts',
    'if (task.orderNumber === orderNumber) tables.saveTask',
    'tables.saveTask',
  ),
  one(
    'a release is sent once',
    'delivery/hand-back.ts',
    'this.#context.onStoreError(error);\n      }\n',
    'return undefined;\n      }\n',
  ),
  one(
    'a former holder confirms for the new one',
    'ledger/operations/session.ts',
    'if (task?.hasPendingOrders !== true || task.session !== session || task.epoch !== epoch || task.claim !== claim)\n',
    'if (task?.hasPendingOrders !== true)\n',
  ),
  one(
    'earlier orders are not delivered to a new holder',
    'ledger/rules/transitions.ts',
    ': task.orderNumber > 0;',
    ': false;',
  ),
  one(
    'a worker that waits is not parked',
    'ledger/operations/take.ts',
    'if (claimed.length < limit) tables.park(worker, agents, now);\n  else tables.unpark(worker);',
    '',
  ),
  one(
    'a limit on running tasks is not enforced',
    'ledger/operations/take.ts',
    'isLimited && isFull(readyQueue) ?',
    'false ?',
  ),
  one(
    'a worker continues after its lease expired by its own clock',
    'delivery/session.ts',
    'if (this.lease.isOver) this.end();\n    else if (this.lease.isFenced) this.#fence();',
    '',
  ),
  one(
    'the lease of a repeated take counts from its repeat',
    'delivery/worker-session.ts',
    'this.#startLease(session, asked));\n    } finally',
    'this.#startLease(session, session.lease.now()));\n    } finally',
  ),
  plantOn('suspends')(
    'a session survives a response that took longer than its lease',
    'delivery/session.ts',
    "if (answer.result === 'session-ended' || this.lease.isOver) {",
    "if (answer.result === 'session-ended') {",
  ),
  plantOn('suspends')(
    'a call begins in a process that was stopped or slept',
    'run/recording.ts',
    'await this.#work.checkHeld();',
    '',
  ),
  one(
    'a worker that slept writes before it asks the store',
    'delivery/session.ts',
    'return this.lease.hasSlept ? this.beatOrThrow(() => this.lease.hasSlept) : undefined;',
    'return undefined;',
  ),
  one(
    'a worker counts its turns from the start again',
    'run/journal/activity.ts',
    'this.#turns = before?.turns ?? 0;',
    'this.#turns = 0 * (before?.turns ?? 0);',
  ),
  one(
    "a task's counts are not kept",
    'ledger/operations/work.ts',
    'alreadyThere || activity === undefined ?',
    'alreadyThere || activity !== undefined ?',
  ),
];

export const plantedBugs: readonly PlantedBug[] = [
  ...plantedInDelivery,
  ...plantedInMixed,
  ...plantedInUpgrade,
  ...plantedInPoison,
  ...plantedInProvider,
  ...plantedInBus,
];

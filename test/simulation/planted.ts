import { type PlantedBug, plantOn } from './planted-bug.ts';
import { plantedInPoison } from './planted-poison.ts';
import { plantedInUpgrade } from './planted-upgrade.ts';
import { plantedInWide } from './planted-wide.ts';

const one = plantOn('delivery');

/** What could be wrong with delivery, and was, in one engine or another. */
const plantedInDelivery: readonly PlantedBug[] = [
  one(
    'blind final write',
    'operations/work.ts',
    'const { status } = nextStatus(task.status, outcome.status);',
    'const status = outcome.status as TaskStatus;',
  ),
  one('no fence', 'operations/work.ts', 'if (!isOwn || (task.status', 'if (task === undefined || (task.status'),
  one(
    'session and claim not compared, epoch not raised',
    'operations/work.ts',
    'task?.epoch === epoch && task.session === session && task.claim === claim;',
    'task !== undefined && (task.epoch === epoch || true);',
  ),
  one(
    'a sweep fails what is being cancelled',
    'operations/session.ts',
    "if (task.status === 'running' && deaths >= LIMITS.maxDeaths) {",
    "if (task.status === 'cancelling' || deaths >= LIMITS.maxDeaths) {",
  ),
  one('a release forgets the cancel', 'status.ts', "release: 'cancelling',", "release: 'init',"),
  one(
    'a cancel that is accepted is not written',
    'operations/stop-order.ts',
    "if (task.stage === 'held') giveOrder(stopping, 'cancel', moment);",
    "if (task.stage === 'held') void stopping;",
  ),
  one('the last reason wins', 'operations/stop-order.ts', 'reason: before?.reason ?? reason,', 'reason,'),
  one(
    'an end keeps its place in the conversation',
    'operations/work.ts',
    'const successor = leaveConversation(ended, moment);',
    'const successor = undefined as string | undefined;',
  ),
  one('what is due later is never brought on', 'operations/take.ts', 'bringOnDue(moment);\n', ''),
  one(
    'a lane is closed while something is ready in it',
    'operations/take.ts',
    'if (tables.firstReady(lane) === undefined) tables.closeLane(lane);',
    'if (tables.firstReady(lane) !== undefined) tables.closeLane(lane);',
  ),
  one('a lane is not opened again', 'operations/stage.ts', 'tables.openLane(lane);\n', ''),
  one('grace is given again and again', 'operations/visit.ts', '&& !state.graceGiven', ''),
  one(
    'a session is never swept',
    'operations/session.ts',
    'while (first !== undefined && first.expiresAt! <= now && freed < limit)',
    'while (first !== undefined && first.expiresAt! <= now && freed < -limit)',
  ),
  one(
    'a release loses an attempt, and a death two',
    'operations/session.ts',
    'const deaths = task.deaths + 1;',
    'const deaths = task.deaths + 7;',
  ),
  one(
    'a task created again is created anew',
    'operations/create.ts',
    'if (existing !== undefined) {',
    'if (existing !== undefined && existing.endedAt === undefined && existing.epoch > 99) {',
  ),
  one(
    'a take that is repeated forgets what it took',
    'operations/take.ts',
    "const held = tasks.filter((task) => task.stage === 'held' && task.claim === session.tookBy);",
    'const held = tasks.filter((task) => task.attempts > 99);',
  ),
  one(
    'an append is written twice',
    'operations/work.ts',
    'const added = alreadyThere ? [] : events;',
    'const added = events;',
  ),
  one(
    'positions go back',
    'operations/work.ts',
    'const position = task.position + added.length;',
    'const position = Math.max(1, task.position + added.length - 1);',
  ),
  one(
    'the end of a superseded task is forgotten',
    'operations/queue.ts',
    'endUnstarted(current, reason, moment);\n',
    '',
  ),
  one(
    'what waited is dropped without an end',
    'operations/queue.ts',
    'for (const id of conversation.waiting) endUnstarted(tables.task(id)!, reason, moment);',
    '',
  ),
  one(
    'an ended task is held on',
    'operations/stage.ts',
    'const { stage, stageAt: _stageAt, policy: _policy, told: _told, lostClaim: _lostClaim, ...rest } = task;',
    'const { told: _told, ...rest } = task; const { stage } = task;',
  ),
  one(
    'a held task is in no session',
    'operations/take.ts',
    '    session,\n    claim,\n    worker,',
    '    claim,\n    worker,',
  ),
  one(
    'a worker that lost its task goes on',
    'run/execution.ts',
    "this.token.cancel({ kind: 'lease-lost', message: error.message }, { mode: { abortMs: 1_000 } });",
    '',
  ),
  one(
    'a worker never beats',
    'run/claim/domain-session.ts',
    'if (this.#holders.size === 0) return false;',
    'if (this.#holders.size >= 0) return false;',
  ),
  {
    name: 'a worker takes an answer of an older session, and works on it',
    ground: 'delivery',
    changes: [
      {
        file: 'run/claim/domain-session.ts',
        find: "if (session !== this.#id) return { answer: 'gone' };\n    if (answer",
        replace: 'if (answer',
      },
      {
        file: 'run/claim/domain-session.ts',
        find: 'if (session !== this.#id) {\n      holder.lose',
        replace: "if (session === '') {\n      holder.lose",
      },
    ],
  },
  one(
    'a beat asked for during a beat is lost',
    'run/claim/domain-session.ts',
    'this.#beating = this.#beatUntilHeard();\n    else this.#beatAgain = true;',
    'this.#beating = this.#beatUntilHeard();',
  ),
  one(
    'intents are not written before a call',
    'run/agent-work.ts',
    'await journal.flushWhole();\n    // Check again',
    '// Check again',
  ),
  one(
    'a journal is written though the claim is known to be lost',
    'run/journal/journal.ts',
    'if (this.#lost !== undefined) return;\n        const orders',
    'const orders',
  ),
  one(
    'what a worker wrote last is not flushed',
    'run/execution.ts',
    'await this.#journal.flush();\n      const status',
    'const status',
  ),
  one(
    'the end of a task is reported though it was not written',
    'run/execution.ts',
    'return (await store.finish(claim, outcome)).status;',
    'store.finish(claim, outcome).catch(() => {}); return outcome.status;',
  ),
  one(
    'a session is reused after its end',
    'run/claim/domain-session.ts',
    'this.#confirmed.clear();\n    this.#id = this.#newId();',
    'this.#confirmed.clear();',
  ),
  one(
    'a task is freed without raising its epoch',
    'operations/session.ts',
    'return { ...rest, epoch: task.epoch + 1 };',
    'return rest;',
  ),
  one(
    'an order is confirmed by the wrong number',
    'operations/session.ts',
    'if (task.orderNumber === orderNumber) tables.saveTask',
    'tables.saveTask',
  ),
  one(
    'a release is sent once',
    'run/claim/hand-back.ts',
    'this.#options.onStoreError(error);\n      }\n',
    'return undefined;\n      }\n',
  ),
  one(
    'a former holder confirms for the new one',
    'operations/session.ts',
    'if (task?.told !== true || task.session !== session || task.epoch !== epoch || task.claim !== claim) return;',
    'if (task?.told !== true) return;',
  ),
  one(
    'orders of before are not told to a new holder',
    'operations/take.ts',
    'told: task.orderNumber > 0,',
    'told: false,',
  ),
  one(
    'a worker that waits is not parked',
    'operations/take.ts',
    'if (claimed.length < limit) tables.park(worker, agents, now);\n  else tables.unpark(worker);',
    '',
  ),
  one('a limit on what runs at once is not kept', 'operations/take.ts', 'isLimited && isFull(lane) ?', 'false ?'),
  one(
    'a worker goes on after its lease by its own clock',
    'run/claim/domain-session.ts',
    'if (this.#lease.isOver) this.#end();\n    else if (this.#lease.isFenced) this.#fence();',
    '',
  ),
  one(
    'the lease of a repeated take counts from its repeat',
    'run/claim/domain-session.ts',
    'await this.#startLease(asked);\n      isStarted',
    'await this.#startLease(this.#lease.now());\n      isStarted',
  ),
  plantOn('pauses')(
    'a session is kept by an answer that took longer than its lease',
    'run/claim/domain-session.ts',
    "if (answer.answer === 'gone' || this.#lease.isOver) {",
    "if (answer.answer === 'gone') {",
  ),
  plantOn('pauses')(
    'a call begins in a process that was stopped or slept',
    'run/agent-work.ts',
    'await this.#work.checkHeld();',
    '',
  ),
  one(
    'a worker that slept writes before it asks',
    'run/claim/domain-session.ts',
    'return this.#lease.hasSlept ? this.#beatOrThrow(() => this.#lease.hasSlept) : undefined;',
    'return undefined;',
  ),
  one(
    'a worker counts its turns from the start again',
    'run/journal/activity.ts',
    'this.#turns = before?.turns ?? 0;',
    'this.#turns = 0 * (before?.turns ?? 0);',
  ),
  one(
    'what a task did is not kept',
    'operations/work.ts',
    'alreadyThere || activity === undefined ?',
    'alreadyThere || activity !== undefined ?',
  ),
];

export const plantedBugs: readonly PlantedBug[] = [
  ...plantedInDelivery,
  ...plantedInWide,
  ...plantedInUpgrade,
  ...plantedInPoison,
];

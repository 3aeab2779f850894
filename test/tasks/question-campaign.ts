import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock, systemWorld } from '@whoa/core/embed';
import type { AnswerReceipt, Question, TaskRecord, TaskStore } from '@whoa/tasks';
import { createSteppedClock } from '../servers/stepped-clock.ts';
import { retryWhileUnavailable } from './ask-until-answered.ts';
import { openTicketOffice } from './chaos-bullmq.ts';
import type { ChaosStore, ChaosStoreKind } from './chaos-stores.ts';
import { type Child, startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

export interface QuestionReport {
  readonly tasks: number;
  readonly kills: number;
  readonly paid: number;
  readonly denied: number;
  readonly unknown: number;
  /** Answers to the agent's own questions. */
  readonly answered: number;
  /** Tasks that left a worker while they waited for a person. */
  readonly parked: number;
  /** Questions that were open during a restart of the store, or of every process, and answered after it. */
  readonly acrossRestarts: number;
  /** Questions that were open while clocks stepped by hours, and answered after it. */
  readonly acrossSteps: number;
  readonly violations: readonly string[];
}

interface CampaignOptions {
  readonly tasks: number;
  readonly random: () => number;
  /** Besides killed workers: restarts of the store, or of every process if it has no server, and clocks that step. */
  readonly hasDisasters?: boolean;
}

const TENANT = 'people';
const WORKERS = 2;
/** Then the workers are left alone, so that the tasks can end. */
const MAX_KILLS = 12;
/** Within this time people answer: long enough for a few kills. */
const ANSWERED_MS = 4_000;
const HOUR_MS = 3_600_000;
/** No question is open for so long that it expires. */
const MAX_AHEAD_HOURS = 48;

/**
 * Creates tasks that need approval before they pay, and half of the time also ask from which account. Kills workers at
 * random moments, while two people in another process answer each question at the same time. Checks that one answer
 * counts, and that each allowed payment is made once.
 */
export async function runQuestionCampaign(
  kind: SharedStoreKind | ChaosStoreKind,
  options: CampaignOptions,
): Promise<QuestionReport> {
  using folder = temporaryFolder();
  using clock = createSteppedClock();
  await using shared: Partial<ChaosStore> & Pick<ChaosStore, 'location' | typeof Symbol.asyncDispose> =
    await kind.open(clock);
  // A store in a file uses the clock of its process.
  const world = { ...systemWorld, clock: { ...systemClock, now: () => Date.now() + clock.aheadMs } };
  await using opened = openStore(shared.location, { maxAttempts: 10_000, world });
  await using office = shared.front && openTicketOffice(shared.front, ['clerk']);
  const store = office?.placeBefore(opened) ?? opened;
  const file = join(folder.path, 'paid.log');
  writeFileSync(file, '');
  const { random, tasks, hasDisasters = false } = options;
  const front = shared.front === undefined ? [] : [JSON.stringify(shared.front)];
  const start = (): Child => {
    const args = [shared.location, file, random() < 0.5 ? '0' : '400', ...front];
    return startChild('asking-worker', args, { env: clock.env });
  };
  const workers = Array.from({ length: WORKERS }, start);
  const kill = async (victim: number): Promise<void> => {
    workers[victim]!.process.kill('SIGKILL');
    await workers[victim]!.ended;
    workers[victim] = start();
  };
  const events = { kills: 0, restarts: [] as number[], steps: [] as number[] };
  const restart = async (): Promise<void> => {
    const fault = shared.faults?.['restart the server'] ?? shared.faults?.['crash the server'];
    if (fault === undefined) await Promise.all(workers.map((_, victim) => kill(victim)));
    else await fault();
    events.restarts.push(performance.now());
  };
  const step = (): void => {
    const ahead = clock.aheadMs + Math.round((1 + random() * 4) * HOUR_MS);
    clock.setAhead(Math.min(MAX_AHEAD_HOURS * HOUR_MS, ahead));
    events.steps.push(performance.now());
  };
  let isOver = false;
  const injecting = (async () => {
    while (!isOver && events.kills < MAX_KILLS) {
      const victim = Math.floor(random() * WORKERS);
      await workers[victim]!.hear<{ type: string }>(({ type }) => type === 'serving');
      await wait(100 + random() * 500);
      if (isOver) return;
      await kill(victim);
      events.kills++;
      if (!hasDisasters || events.kills % 3 !== 0) continue;
      await wait(random() * 1_000);
      if (events.kills % 2 === 0) await restart();
      else step();
    }
  })();
  const answers: Promise<Answered>[] = [];
  const parked = new Set<string>();
  const ask = <T>(request: () => Promise<T>): Promise<T> => retryWhileUnavailable(request);
  try {
    for (let i = 0; i < tasks; i++)
      await ask(() => store.create({ tenant: TENANT, agent: 'clerk', input: `invoice-${i}`, key: `${i}` }));
    const asked = new Set<string>();
    for (let ended = 0; ended < tasks; ) {
      for (const question of (await ask(() => store.questions({ tenant: TENANT, limit: 200 }))).questions) {
        if (asked.has(question.id)) continue;
        asked.add(question.id);
        answers.push(answerTwice(store, question, random));
      }
      const task = await ask(() => store.find({ tenant: TENANT, key: `${ended}` }));
      if (task?.stage === 'parked') parked.add(task.id);
      if (task?.endedAt === undefined) await wait(20);
      else ended++;
    }
  } finally {
    isOver = true;
    await injecting;
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const given = await Promise.all(answers);
  const countAcross = (moments: readonly number[]): number =>
    given.filter(({ seenAt, answeredAt }) => moments.some((at) => at > seenAt && at < answeredAt)).length;
  return {
    tasks,
    kills: events.kills,
    parked: parked.size,
    acrossRestarts: countAcross(events.restarts),
    acrossSteps: countAcross(events.steps),
    ...(await verify(store, { tasks, answers: given, lines })),
  };
}

interface Answered {
  readonly id: string;
  readonly seenAt: number;
  /** When the first person answered. */
  readonly answeredAt: number;
  readonly receipts: readonly { readonly by: string; readonly receipt: AnswerReceipt }[];
}

async function answerTwice(store: TaskStore, { id, kind }: Question, random: () => number): Promise<Answered> {
  const seenAt = performance.now();
  const people = [
    { by: 'ann', decision: 'yes', afterMs: random() * ANSWERED_MS },
    { by: 'bob', decision: 'no', afterMs: random() * ANSWERED_MS },
  ];
  const receipts = people.map(async ({ by, decision, afterMs }) => {
    await wait(afterMs);
    const value = kind === 'approve' ? { decision } : { answer: `the account of ${by}` };
    // An answer whose receipt was lost is repeated with the same nonce.
    const give = () => store.answer({ tenant: TENANT, id }, { value, by }, { nonce: `${id} ${by}` });
    return { by, receipt: await retryWhileUnavailable(give) };
  });
  const answeredAt = seenAt + Math.min(...people.map(({ afterMs }) => afterMs));
  return { id, seenAt, answeredAt, receipts: await Promise.all(receipts) };
}

async function verify(
  store: TaskStore,
  given: { readonly tasks: number; readonly answers: readonly Answered[]; readonly lines: readonly string[] },
) {
  const violations: string[] = [];
  const counts = { paid: 0, denied: 0, unknown: 0, answered: 0 };
  for (const { id, receipts } of given.answers) {
    const [accepted, ...more] = receipts.filter(({ receipt }) => receipt.result === 'accepted');
    if (accepted === undefined || more.length > 0) violations.push(`${id}: ${1 + more.length} answers were accepted`);
    for (const { receipt } of receipts) {
      const isRight = receipt.result === 'accepted' || ('given' in receipt && receipt.given?.by === accepted?.by);
      if (!isRight) violations.push(`${id}: the other answer got ${JSON.stringify(receipt)}`);
    }
  }
  for (let i = 0; i < given.tasks; i++) {
    const task = (await store.find({ tenant: TENANT, key: `${i}` })) as TaskRecord;
    const paid = given.lines.filter((line) => line === `invoice-${i}`).length;
    const { questions = [] } = task;
    const [question, ...others] = questions.filter(({ kind }) => kind === 'approve');
    if (i % 2 === 1) {
      violations.push(...(await judgeAnswer(store, task)));
      counts.answered++;
    }
    const { decision } = (question?.answer?.value ?? {}) as { decision?: string };
    const isUnknown = task.outcome?.answer?.includes('It is not known whether') === true;
    if (others.length > 0) violations.push(`${task.id}: asked ${1 + others.length} times`);
    if (task.status !== 'success') violations.push(`${task.id}: ended ${task.status}`);
    if (question?.closed?.why !== 'answered') violations.push(`${task.id}: closed as ${question?.closed?.why}`);
    if (paid > 1 || (decision !== 'yes' && paid > 0)) violations.push(`${task.id}: ${decision}, paid ${paid} times`);
    if (decision === 'yes' && paid === 0 && !isUnknown) violations.push(`${task.id}: yes, and ${task.outcome?.answer}`);
    if (isUnknown) counts.unknown++;
    else if (paid > 0) counts.paid++;
    else counts.denied++;
  }
  return { ...counts, violations };
}

/** The answer that counted is the result of the call, once. */
async function judgeAnswer(store: TaskStore, task: TaskRecord): Promise<readonly string[]> {
  const asked = (task.questions ?? []).filter(({ kind }) => kind === 'answer');
  const entries: { event: { type: string; result?: { callId: string; content: string } } }[] = [];
  for (let after: number | undefined = 0; after !== undefined; ) {
    const page = await store.read(task, { after });
    entries.push(...(page as unknown as typeof entries));
    after = page.at(-1)?.position;
  }
  const ends = entries.filter(({ event }) => event.type === 'call-end' && event.result?.callId === 'c0');
  const given = asked.map(({ answer }) => (answer?.value as { answer?: string } | undefined)?.answer).join();
  const results = ends.map(({ event }) => event.result!.content).join();
  if (asked.length === 1 && asked[0]!.closed?.why === 'answered' && results === given) return [];
  return [
    `${task.id}: asked ${asked.length} times, closed as ${asked[0]?.closed?.why}, given ${given}, results ${results}`,
  ];
}

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { AnswerReceipt, TaskRecord, TaskStore } from '@whoa/tasks';
import { type Child, startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

export interface QuestionReport {
  readonly tasks: number;
  readonly kills: number;
  readonly paid: number;
  readonly denied: number;
  readonly unknown: number;
  readonly unasked: number;
  /** Tasks that left a worker while they waited for a person. */
  readonly parked: number;
  readonly violations: readonly string[];
}

interface CampaignOptions {
  readonly tasks: number;
  readonly random: () => number;
}

const TENANT = 'people';
const WORKERS = 2;
/** Then the workers are left alone, so that the tasks can end. */
const MAX_KILLS = 12;
/** Within this time people answer: long enough for a few kills. */
const ANSWERED_MS = 4_000;

/**
 * Creates tasks that ask before they pay, kills workers at random moments, and lets two people answer each question at the
 * same time from another process. Checks that one answer counts, and that what it allows is paid once.
 */
export async function runQuestionCampaign(
  kind: SharedStoreKind,
  { tasks, random }: CampaignOptions,
): Promise<QuestionReport> {
  using folder = temporaryFolder();
  await using shared = await kind.open();
  await using store = openStore(shared.location, { maxAttempts: 10_000 });
  const file = join(folder.path, 'paid.log');
  writeFileSync(file, '');
  const start = (): Child => startChild('asking-worker', [shared.location, file, random() < 0.5 ? '0' : '400']);
  const workers = Array.from({ length: WORKERS }, start);
  const answers: Promise<Answered>[] = [];
  const parked = new Set<string>();
  let [kills, isOver] = [0, false];
  const killing = (async () => {
    while (!isOver && kills < MAX_KILLS) {
      const victim = Math.floor(random() * WORKERS);
      await workers[victim]!.hear<{ type: string }>(({ type }) => type === 'serving');
      await wait(100 + random() * 500);
      if (isOver) return;
      workers[victim]!.process.kill('SIGKILL');
      await workers[victim]!.ended;
      workers[victim] = start();
      kills++;
    }
  })();
  try {
    for (let i = 0; i < tasks; i++)
      await store.create({ tenant: TENANT, agent: 'clerk', input: `invoice-${i}`, key: `${i}` });
    const asked = new Set<string>();
    for (let ended = 0; ended < tasks; ) {
      for (const { id } of (await store.questions({ tenant: TENANT, limit: 200 })).questions) {
        if (asked.has(id)) continue;
        asked.add(id);
        answers.push(answerTwice(store, id, random));
      }
      const task = await store.find({ tenant: TENANT, key: `${ended}` });
      if (task?.stage === 'parked') parked.add(task.id);
      if (task?.endedAt === undefined) await wait(20);
      else ended++;
    }
  } finally {
    isOver = true;
    await killing;
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  }
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return {
    tasks,
    kills,
    parked: parked.size,
    ...(await judge(store, { tasks, answers: await Promise.all(answers), lines })),
  };
}

interface Answered {
  readonly id: string;
  readonly receipts: readonly { readonly by: string; readonly decision: string; readonly receipt: AnswerReceipt }[];
}

async function answerTwice(store: TaskStore, id: string, random: () => number): Promise<Answered> {
  const people = [
    { by: 'ann', decision: 'yes', afterMs: random() * ANSWERED_MS },
    { by: 'bob', decision: 'no', afterMs: random() * ANSWERED_MS },
  ];
  const receipts = people.map(async ({ by, decision, afterMs }) => {
    await wait(afterMs);
    return { by, decision, receipt: await store.answer({ tenant: TENANT, id }, { value: { decision }, by }) };
  });
  return { id, receipts: await Promise.all(receipts) };
}

async function judge(
  store: TaskStore,
  given: { readonly tasks: number; readonly answers: readonly Answered[]; readonly lines: readonly string[] },
) {
  const violations: string[] = [];
  const counts = { paid: 0, denied: 0, unknown: 0, unasked: 0 };
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
    const [question, ...others] = task.questions ?? [];
    const { decision } = (question?.answer?.value ?? {}) as { decision?: string };
    const isUnknown = task.outcome?.answer?.includes('It is not known whether') === true;
    // Its worker was killed before it asked: the call ends as not started, and the model decides.
    if (question === undefined && paid === 0 && task.status === 'success') {
      counts.unasked++;
      continue;
    }
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

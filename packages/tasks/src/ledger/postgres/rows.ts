import type { CancelReason, Json } from '@whoa/core';
import type { Orders, TakenTask, TaskLoad } from '../../delivery/worker-store.ts';
import type { AnswerReceipt, NewAnswer, Question, QuestionEnd } from '../../question.ts';
import type { NumberedCommand, StopOrder, TaskCommand, TaskOutcome, TaskRecord, TaskSummary } from '../../task.ts';
import { parseActivity } from '../rules/activity.ts';
import { hashClaim } from '../rules/claim-hash.ts';
import { toContext } from '../rules/new-task.ts';
import { toTooLate } from '../rules/questions.ts';

type ShownCommands = readonly (readonly [number: number, command: TaskCommand])[];

/** The fields of a head that have a column each. */
type Field = Exclude<
  keyof TaskSummary,
  'commands' | 'stop' | 'activity' | 'waiting' | 'hasAsked' | 'outcome' | 'claimHash'
>;
const FIELDS = `id tenant agent conversation title key nonce superseded steered priority notBefore deadline status stage
  stageAt policy epoch attempts crashes worker createdAt startedAt endedAt commandsSent orderNumber position journalBytes
  traceparent startedBy`.split(/\s+/) as readonly Field[];
const COLUMNS = new Map(FIELDS.map((field) => [field, field.replaceAll(/[A-Z]/g, (x) => `_${x.toLowerCase()}`)]));

/** A row of `tasks` as `row_to_json` shows it. */
type TaskRow = Readonly<Record<string, unknown>> &
  Pick<TaskSummary, 'id' | 'epoch'> & {
    readonly session: string;
    readonly claim: string | null;
    readonly activity: string | null;
    readonly questions_open: number | null;
    readonly outcome: Omit<TaskOutcome, 'status'> | null;
    readonly outcome_reason: CancelReason | null;
    readonly outcome_complete: boolean | null;
  };

export interface SummaryRow {
  readonly row: TaskRow;
  readonly stop: StopOrder | null;
  readonly commands: ShownCommands | null;
}

export interface RecordRow extends SummaryRow {
  readonly inputs: readonly Json[];
  readonly context: string | null;
  readonly questions: readonly ShownQuestion[] | null;
}

/** A question as `fn.question_record` shows it. */
export interface ShownQuestion extends Pick<Question, 'id' | 'askedAt'> {
  readonly asked: Pick<Question, 'callId' | 'kind' | 'shown'>;
  readonly expiresAt: number | null;
  readonly answer: (NewAnswer & { readonly by?: string }) | null;
  readonly answeredAt: number | null;
  readonly why: QuestionEnd | null;
  readonly closedAt: number | null;
}

export interface ShownLoad extends Omit<TaskLoad, 'context'> {
  readonly context: string | null;
}

/** The columns of `fn.taken_row`. */
const TAKEN =
  `id tenant agent conversation title key nonce superseded steered priority not_before deadline status stage epoch attempts
  crashes worker created_at started_at commands_sent order_number position journal_bytes traceparent started_by session claim
  activity questions_open`.split(/\s+/);

/** Those that are not texts. */
const PARSED = new Set(
  `superseded priority not_before deadline epoch attempts crashes created_at started_at commands_sent order_number position
  journal_bytes questions_open`.split(/\s+/),
);

type TakenRow = readonly (string | null)[];

/** A task that was taken: what `fn.hold` shows of one without orders, or everything. */
export type ShownTaken = PlainTaken | FullTaken;

type PlainTaken = readonly [
  row: TakenRow,
  inputs: readonly Json[],
  context: string | null,
  readers: readonly string[] | null,
];

interface FullTaken extends Omit<SummaryRow, 'row'> {
  readonly row: TakenRow;
  readonly load: ShownLoad | null;
  readonly readers: readonly string[];
  readonly questions: readonly ShownQuestion[] | null;
}

export interface ShownOrders {
  readonly now: number;
  readonly orderNumber: number;
  readonly stop: StopOrder | null;
  readonly commands: ShownCommands | null;
  readonly readers: readonly string[];
  readonly questions: readonly ShownQuestion[] | null;
}

export function toSummary({ row, commands, stop }: SummaryRow): TaskSummary {
  const { outcome, outcome_reason: reason, outcome_complete: isComplete, activity, questions_open: waiting } = row;
  const fields = Object.fromEntries([...COLUMNS].map(([field, column]) => [field, row[column]]));
  const head = present(fields) as unknown as Pick<TaskSummary, Field>;
  return {
    ...head,
    ...(row.claim !== null && { claimHash: hashClaim(row.claim) }),
    commands: toCommands(commands),
    ...present({ stop }),
    ...(activity !== null && { activity: parseActivity(activity, head) }),
    ...(waiting !== null && { hasAsked: true }),
    ...(waiting !== null && waiting > 0 && { waiting }),
    // Spread what the work returned unchanged: a null in it belongs to it.
    ...(outcome !== null && {
      outcome: { ...outcome, status: head.status as 'success', ...present({ reason, isComplete }) },
    }),
  };
}

export function toRecord({ inputs, context, questions, ...head }: RecordRow): TaskRecord {
  return { ...toSummary(head), inputs, ...toContext(context), ...toQuestions(questions) };
}

export function toLoad({ context, ...load }: ShownLoad): TaskLoad {
  return { ...load, ...toContext(context) };
}

export function toTaken(shown: ShownTaken, now: number): TakenTask {
  const taken = 'row' in shown ? shown : fromPlain(shown);
  const fields = TAKEN.map((column, i): [string, unknown] => {
    const text = taken.row[i]!;
    return [column, text !== null && PARSED.has(column) ? JSON.parse(text) : text];
  });
  const row = Object.fromEntries([['outcome', null], ...fields]) as TaskRow;
  const { id, epoch, session, claim } = row;
  const task = toSummary({ ...taken, row });
  return {
    claim: { id, epoch, session, claim: claim! },
    task,
    orders: toOrders({ ...taken, now, orderNumber: task.orderNumber }),
    ...(taken.load !== null && { load: toLoad(taken.load) }),
  };
}

function fromPlain([row, inputs, context, readers]: PlainTaken): FullTaken {
  const load = { inputs, history: [], context };
  return { row, load, readers: readers ?? [], stop: null, commands: null, questions: null };
}

export function toOrders({ now, orderNumber, stop, commands, readers, questions }: ShownOrders): Orders {
  const asked = toQuestions(questions);
  return {
    now,
    orderNumber,
    ...(stop !== null && { stop }),
    commands: toCommands(commands),
    readers,
    ...asked,
  };
}

function toQuestions(shown: readonly ShownQuestion[] | null): { questions?: readonly Question[] } {
  return shown === null ? {} : { questions: shown.map(toQuestion) };
}

export function toQuestion(shown: ShownQuestion): Question {
  const { id, asked, askedAt, expiresAt, answer, answeredAt, why, closedAt } = shown;
  return {
    id,
    ...asked,
    askedAt,
    ...present({ expiresAt }),
    ...(answer !== null && { answer: { ...answer, at: answeredAt! } }),
    ...(why !== null && { closed: { why, at: closedAt! } }),
  };
}

type ShownReceipt =
  | { readonly result: 'accepted'; readonly at: number }
  | { readonly result: 'too-late'; readonly question: ShownQuestion }
  | { readonly result: 'not-found' };

export function toAnswerReceipt(receipt: ShownReceipt, question: string): AnswerReceipt {
  if (receipt.result === 'accepted') return { ...receipt, question };
  return receipt.result === 'too-late' ? toTooLate(toQuestion(receipt.question)) : receipt;
}

/** Leaves out what is null or undefined. */
export function present<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], null> } {
  const kept: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(value)) if (one !== null && one !== undefined) kept[name] = one;
  return kept as { [K in keyof T]?: Exclude<T[K], null> };
}

function toCommands(commands: ShownCommands | null): readonly NumberedCommand[] {
  return commands?.map(([number, command]) => ({ ...command, number })) ?? [];
}

import { type Json, SettingsError } from '@whoa/core';
import type { Batch, ClaimRef, ClaimRequest } from '../../delivery/worker-store.ts';
import { findQuestionTask, type QuestionKind } from '../../question.ts';
import type { NewTask, TaskActivity, TaskOutcome } from '../../task.ts';
import type { DriverBatch, ListRequest } from '../driver.ts';
import { serializeActivity } from '../rules/activity.ts';
import { CLOSED_FROM } from '../rules/questions.ts';
import { SETTLE, SIZES } from '../rules/rules.ts';
import { checkDuration, checkName, checkPriority, checkSize } from './checks.ts';

/** Version 00 of the W3C trace context. */
const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export function checkTask(task: NewTask): void {
  const { tenant, agent, conversation, key, preferredWorker, startedBy, notBefore, deadline } = task;
  const { debounceMs = 0, priority = 0, traceparent } = task;
  for (const [name, value] of Object.entries({ tenant, agent, conversation, key, preferredWorker, startedBy })) {
    if (value !== undefined || name === 'tenant' || name === 'agent') checkName(name, value!);
  }
  if (agent.startsWith(SETTLE)) {
    throw new SettingsError(
      'agent',
      `names that start with '${SETTLE}' are reserved for the store; choose another name`,
    );
  }
  if (debounceMs !== 0) {
    checkDuration('debounceMs', debounceMs);
    if (conversation === undefined) throw new SettingsError('debounceMs', 'only valid for a task of a conversation');
    if (notBefore !== undefined)
      throw new SettingsError('notBefore', 'cannot be combined with debounceMs; leave one out');
  }
  checkPriority(priority);
  if (traceparent !== undefined && !TRACEPARENT.test(traceparent)) {
    throw new SettingsError(
      'traceparent',
      `expected 00-TRACE-SPAN-FLAGS in lower-case hexadecimal, got '${traceparent}'`,
    );
  }
  for (const [name, moment] of Object.entries({ notBefore, deadline })) {
    if (moment === undefined || Number.isFinite(moment)) continue;
    throw new RangeError(`${name}: expected milliseconds since 1970, got ${moment}`);
  }
  if (notBefore !== undefined && deadline !== undefined && deadline <= notBefore) {
    throw new RangeError('deadline: expected a time after notBefore; the task could never start');
  }
}

export function checkRequest({ worker, session, claim, leaseMs }: ClaimRequest): void {
  checkName('worker', worker);
  checkName('session', session);
  checkName('claim', claim);
  checkDuration('leaseMs', leaseMs);
}

const MAX_ERROR_BYTES = 4_096;

/** Checks an activity, and returns the text to keep. */
export function checkActivity(activity: TaskActivity, { epoch }: ClaimRef): string {
  const { turns, calls, usage, spending, providerWait } = activity;
  const { inputTokens = 0, cachedInputTokens = 0, outputTokens = 0 } = usage ?? {};
  const { spent = 0, estimated = 0, reserved = 0 } = spending ?? {};
  const { error = '', since = 0, attempts = 0 } = providerWait ?? {};
  checkSize('activity.providerWait.error', error, MAX_ERROR_BYTES);
  const tokens = { inputTokens, cachedInputTokens, outputTokens };
  const counts = { turns, calls, ...tokens, spent, estimated, reserved, since, attempts };
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new RangeError(`activity.${name}: expected a whole number from 0, got ${value}`);
  }
  return serializeActivity(activity, epoch);
}

const KINDS: readonly QuestionKind[] = ['approve', 'answer', 'client'];
const WHY: readonly string[] = Object.keys(CLOSED_FROM);

/** Checks what a batch asks and closes. Without an event, a batch that arrives twice would not be recognised. */
export function checkQuestions(
  { id: task }: ClaimRef,
  { asks = [], closes = [], events }: Pick<Batch, 'asks' | 'closes' | 'events'>,
): Pick<DriverBatch, 'asks' | 'closes'> {
  const ids = [...asks, ...closes].map(({ id }) => id);
  if (ids.length === 0) return { asks: [], closes: [] };
  if (events.length === 0) throw new SettingsError('asks, closes', 'expected an event that journals them');
  if (new Set(ids).size < ids.length) throw new SettingsError('asks, closes', 'expected each question once');
  for (const id of ids) {
    if (findQuestionTask(id) !== task)
      throw new SettingsError('asks, closes', `'${id}' is not a question of task ${task}`);
  }
  for (const { why } of closes) if (!WHY.includes(why)) throw new SettingsError('closes', `expected ${WHY.join(', ')}`);
  const asked = asks.map(({ id, callId, kind, shown, expiresMs }) => {
    checkName('callId', callId);
    checkName('shown', shown);
    if (!KINDS.includes(kind)) throw new SettingsError('kind', `expected ${KINDS.join(', ')}`);
    if (expiresMs !== undefined) checkDuration('expiresMs', expiresMs);
    return { id, asked: serializeJson({ callId, kind, shown }), expiresMs: expiresMs && Math.ceil(expiresMs) };
  });
  return { asks: asked, closes: closes.map(({ id, why }) => ({ id, why })) };
}

/** Don't let an end fail because of its size: parts that are too large are replaced by a note of their size. */
export function boundOutcome(
  outcome: Omit<TaskOutcome, 'history' | 'newMessages'>,
): Omit<TaskOutcome, 'history' | 'newMessages'> {
  const text = serializeJson(outcome);
  if (text.length * 3 <= SIZES.outcomeBytes || Buffer.byteLength(text) <= SIZES.outcomeBytes) {
    return JSON.parse(text) as TaskOutcome;
  }
  const { answer, result, stopReport, ...small } = parsed(outcome);
  const marked = (value: Json): Json => ({ cut: true, bytes: Buffer.byteLength(serializeJson(value)) });
  const maxCharacters = Math.floor(SIZES.outcomeBytes / 16);
  return {
    ...small,
    ...(answer !== undefined && { answer: cutText(answer, maxCharacters) }),
    ...(small.error !== undefined && {
      error: { ...small.error, message: cutText(small.error.message, maxCharacters) },
    }),
    ...(result !== undefined && { result: marked(result) }),
    ...(stopReport !== undefined && { stopReport: marked(stopReport) }),
  };
}

function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const kept = text.slice(0, maxCharacters).toWellFormed();
  return `${kept}… [${text.length - maxCharacters} of ${text.length} characters cut]`;
}

export function parseCursor(cursor: string): NonNullable<ListRequest['after']> {
  const slash = cursor.indexOf('/');
  const createdAt = Number(cursor.slice(0, slash));
  if (slash < 1 || !Number.isFinite(createdAt))
    throw new SettingsError('cursor', `'${cursor}' is not a cursor of this list; pass the next of a page`);
  return { createdAt, id: cursor.slice(slash + 1) };
}

/** Allows only JSON: stored data must survive a restart unchanged. */
export function serializeJson(value: unknown): string {
  return JSON.stringify(value ?? null) ?? 'null';
}

/** Returns a copy that contains only JSON. */
export function parsed<T>(value: T): T {
  return JSON.parse(serializeJson(value)) as T;
}

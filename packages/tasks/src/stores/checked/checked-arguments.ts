import type { Json } from '@whoa/core';
import type { ClaimRequest } from '../../delivery.ts';
import { SIZES } from '../../rules/rules.ts';
import type { NewTask, TaskOutcome } from '../../task.ts';
import type { ListRequest } from '../driver.ts';
import { checkCount, checkDuration, checkName, checkPriority } from './checks.ts';

export function checkTask(task: NewTask): void {
  const { tenant, agent, conversation, key, worker, concurrency, holdMs = 0, priority = 0, notBefore, deadline } = task;
  for (const [name, value] of Object.entries({ tenant, agent, conversation, key, worker })) {
    if (value !== undefined || name === 'tenant' || name === 'agent') checkName(name, value!);
  }
  if (agent === '*') throw new TypeError("agent: '*' is the store's own; choose another name");
  if (holdMs !== 0) {
    checkDuration('holdMs', holdMs);
    if (conversation === undefined)
      throw new TypeError('holdMs: only a task of a conversation is held back for others');
    if (notBefore !== undefined) throw new TypeError('notBefore: not together with holdMs; leave one of them out');
  }
  checkPriority(priority);
  for (const [name, moment] of Object.entries({ notBefore, deadline })) {
    if (moment === undefined || Number.isFinite(moment)) continue;
    throw new RangeError(`${name}: expected milliseconds since 1970, got ${moment}`);
  }
  if (notBefore !== undefined && deadline !== undefined && deadline <= notBefore) {
    throw new RangeError('deadline: expected a moment after notBefore; the task could never begin');
  }
  if (concurrency === undefined) return;
  checkName('concurrency.key', concurrency.key);
  checkCount('concurrency.limit', concurrency.limit);
  if (conversation !== undefined) {
    throw new TypeError('concurrency: a task of a conversation runs one at a time anyway; leave one of the two out');
  }
}

export function checkRequest({ worker, session, claim, leaseMs }: ClaimRequest): void {
  checkName('worker', worker);
  checkName('session', session);
  checkName('claim', claim);
  checkDuration('leaseMs', leaseMs);
}

/** An end must not fail for its size: what is too large goes, and its place says how large it was. */
export function boundOutcome(outcome: Omit<TaskOutcome, 'history' | 'said'>): Omit<TaskOutcome, 'history' | 'said'> {
  const text = jsonOf(outcome);
  if (text.length * 3 <= SIZES.outcomeBytes || Buffer.byteLength(text) <= SIZES.outcomeBytes) {
    return JSON.parse(text) as TaskOutcome;
  }
  const { answer, result, stop, ...small } = parsed(outcome);
  const marked = (value: Json): Json => ({ cut: true, bytes: Buffer.byteLength(jsonOf(value)) });
  const maxCharacters = Math.floor(SIZES.outcomeBytes / 16);
  return {
    ...small,
    ...(answer !== undefined && { answer: cutText(answer, maxCharacters) }),
    ...(small.error !== undefined && {
      error: { ...small.error, message: cutText(small.error.message, maxCharacters) },
    }),
    ...(result !== undefined && { result: marked(result) }),
    ...(stop !== undefined && { stop: marked(stop) }),
  };
}

function cutText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  const kept = text.slice(0, maxCharacters).toWellFormed();
  return `${kept}… [${text.length - maxCharacters} of ${text.length} characters cut]`;
}

export function positionOf(cursor: string): NonNullable<ListRequest['after']> {
  const slash = cursor.indexOf('/');
  const createdAt = Number(cursor.slice(0, slash));
  if (slash < 1 || !Number.isFinite(createdAt)) throw new TypeError(`cursor: '${cursor}' is not the next of a page`);
  return { createdAt, id: cursor.slice(slash + 1) };
}

/** Nothing but JSON: what is kept must survive a restart, and stay as it was handed in. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null) ?? 'null';
}

/** A copy that holds nothing but JSON. */
export function parsed<T>(value: T): T {
  return JSON.parse(jsonOf(value)) as T;
}

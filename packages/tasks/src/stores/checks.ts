import type { ConversationRef, TaskRef } from '../task.ts';

const NAME_MAX = 512;
const DURATION_MS_MAX = 10 * 365 * 24 * 3_600_000;
const LIMIT_MAX = 10_000;
const BYTES_MAX = 2 ** 40;

/** Bad arguments are refused at the door, by name. */
export function checkName(argument: string, value: string): void {
  if (typeof value !== 'string' || value === '' || value.length > NAME_MAX) {
    throw new TypeError(`${argument}: expected a text of 1 to ${NAME_MAX} characters`);
  }
}

export function checkRef(ref: TaskRef | ConversationRef): void {
  checkName('tenant', ref.tenant);
  if ('id' in ref) checkName('id', ref.id);
  else checkName('conversation', ref.conversation);
}

export function checkDuration(argument: string, ms: number): void {
  if (!(ms > 0 && ms <= DURATION_MS_MAX)) {
    throw new RangeError(`${argument}: expected more than 0 and at most ${DURATION_MS_MAX} ms, got ${ms}`);
  }
}

export function checkBytes(argument: string, value: number): number {
  if (!(Number.isInteger(value) && value > 0 && value <= BYTES_MAX)) {
    throw new RangeError(`${argument}: expected a whole number of bytes from 1 to ${BYTES_MAX}, got ${value}`);
  }
  return value;
}

export function checkLimit(argument: string, value: number): number {
  if (!(Number.isInteger(value) && value > 0 && value <= LIMIT_MAX)) {
    throw new RangeError(`${argument}: expected a whole number from 1 to ${LIMIT_MAX}, got ${value}`);
  }
  return value;
}

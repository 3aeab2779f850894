import type { ClaimRef } from '../delivery.ts';
import type { ConversationRef, TaskRef } from '../task.ts';

const NAME_MAX = 512;
const DURATION_MS_MAX = 10 * 365 * 24 * 3_600_000;
const LIMIT_MAX = 10_000;
const PRIORITY_MAX = 100;
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

export function checkClaim(claim: ClaimRef): ClaimRef {
  checkName('id', claim.id);
  checkName('session', claim.session);
  checkName('claim', claim.claim);
  return claim;
}

export function checkDuration(argument: string, ms: number): number {
  if (!(ms > 0 && ms <= DURATION_MS_MAX)) {
    throw new RangeError(`${argument}: expected more than 0 and at most ${DURATION_MS_MAX} ms, got ${ms}`);
  }
  return ms;
}

export function checkPriority(value: number): void {
  if (!(Number.isInteger(value) && Math.abs(value) <= PRIORITY_MAX)) {
    throw new RangeError(`priority: expected a whole number from -${PRIORITY_MAX} to ${PRIORITY_MAX}, got ${value}`);
  }
}

export function checkCount(argument: string, value: number): number {
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw new RangeError(`${argument}: expected a whole number from 1, got ${value}`);
  }
  return value;
}

/** A text of JSON that may not be too large. */
export function checkSize(argument: string, text: string, bytesMax: number): string {
  if (text.length * 3 <= bytesMax) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= bytesMax) return text;
  throw new RangeError(
    `${argument}: ${bytes} bytes of JSON, and at most ${bytesMax} are kept; store it elsewhere and hand in where it is`,
  );
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

import { SettingsError } from '@whoa/core';
import type { ClaimRef } from '../../delivery/worker-store.ts';
import type { ConversationRef, TaskRef } from '../../task.ts';

const MAX_NAME = 512;
const MAX_DURATION_MS = 10 * 365 * 24 * 3_600_000;
const MAX_LIMIT = 10_000;
const MAX_PRIORITY = 100;
const MAX_BYTES = 2 ** 40;

/** Throws on an invalid name, and names the argument. */
export function checkName(argument: string, value: string): void {
  if (typeof value !== 'string' || value === '' || value.length > MAX_NAME) {
    throw new SettingsError(argument, `expected a text of 1 to ${MAX_NAME} characters`);
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
  if (!(ms > 0 && ms <= MAX_DURATION_MS)) {
    throw new RangeError(`${argument}: expected more than 0 and at most ${MAX_DURATION_MS} ms, got ${ms}`);
  }
  return ms;
}

export function checkPriority(value: number): void {
  if (!(Number.isInteger(value) && Math.abs(value) <= MAX_PRIORITY)) {
    throw new RangeError(`priority: expected a whole number from -${MAX_PRIORITY} to ${MAX_PRIORITY}, got ${value}`);
  }
}

export function checkCount(argument: string, value: number): number {
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw new RangeError(`${argument}: expected a whole number from 1, got ${value}`);
  }
  return value;
}

/** Checks the size of a JSON text. */
export function checkSize(argument: string, text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  throw new RangeError(
    `${argument}: ${bytes} bytes of JSON, and at most ${maxBytes} are stored; store it elsewhere and pass its address`,
  );
}

export function checkBytes(argument: string, value: number): number {
  if (!(Number.isInteger(value) && value > 0 && value <= MAX_BYTES)) {
    throw new RangeError(`${argument}: expected a whole number of bytes from 1 to ${MAX_BYTES}, got ${value}`);
  }
  return value;
}

export function checkLimit(argument: string, value: number): number {
  if (!(Number.isInteger(value) && value > 0 && value <= MAX_LIMIT)) {
    throw new RangeError(`${argument}: expected a whole number from 1 to ${MAX_LIMIT}, got ${value}`);
  }
  return value;
}

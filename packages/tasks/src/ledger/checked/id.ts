import { createHash } from 'node:crypto';
import { SettingsError } from '@whoa/core';
import type { KeyRef, NewTask, TaskRef } from '../../task.ts';

/**
 * Creates the id of a new task. The same key, or without a key the same nonce, always gives the same id. This makes
 * creating a task twice harmless.
 */
export function createTaskId(
  { tenant, conversation, key }: Pick<NewTask, 'tenant' | 'conversation' | 'key'>,
  nonce: string,
): string {
  const parts = [tenant, conversation ?? '', ...(key === undefined ? ['nonce', nonce] : [key])];
  return `t-${createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)}`;
}

/** Returns the reference of the task that is created under a key. */
export function refOfKey(ref: KeyRef): TaskRef {
  if (ref.key === '') throw new SettingsError('key', 'expected a text of at least 1 character');
  return { tenant: ref.tenant, id: createTaskId(ref, '') };
}

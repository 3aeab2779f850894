import { createHash, randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import type { TaskStore } from '@whoa/tasks';
import { UsageError } from '../command.ts';
import type { ConnectionContext } from '../system.ts';
import { findTask } from './find-task.ts';
import { LOCAL_TENANT } from './local-tasks.ts';
import { createTenantSource } from './source/store-source.ts';
import { listTasks } from './source/task-source.ts';

const MAX_LISTED = 1_000;
const KEY_CHARACTERS = 12;

/** Names a new conversation. The name says which folder it belongs to. */
export function createConversationName(folder: string): string {
  return `${folderPrefix(folder)}${randomUUID()}`;
}

/** Returns the conversation of a task, or of the last task in this folder if no task is given. */
export async function findConversation(
  store: TaskStore,
  given: string | undefined,
  surroundings: ConnectionContext,
): Promise<string> {
  const source = createTenantSource(store, { tenant: LOCAL_TENANT, stopMode: 'graceful' });
  if (given !== undefined) {
    const { id, conversation } = await findTask(source, given, surroundings);
    if (conversation === undefined)
      throw new UsageError(`--continue: ${id} is not part of a conversation; leave TASK out, or choose another`);
    return conversation;
  }
  const prefix = folderPrefix(surroundings.cwd());
  const { tasks } = await listTasks(source, { limit: MAX_LISTED });
  const last = tasks.find(({ conversation }) => conversation?.startsWith(prefix));
  if (last?.conversation !== undefined) return last.conversation;
  throw new UsageError('--continue: no recent run in this folder');
}

function folderPrefix(folder: string): string {
  const key = createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, KEY_CHARACTERS);
  return `folder-${key}-`;
}

import { dirname, join } from 'node:path';
import { createCleanupList } from '@whoa/core/internal';
import type { TaskRef } from '@whoa/tasks';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { removeOldContents } from '@whoa/tools';
import { reportCleanup } from '../terminal/report-cleanup.ts';

/** Where the old contents of changed files are kept for an undo. Dispose it when nothing runs any more. */
export interface UndoFolder extends AsyncDisposable {
  readonly path: string;
  /** Removes what was kept for a task or a run that has ended. */
  forget(id: string): void;
  /** For runners: what was kept for a task is removed when it has ended. */
  readonly hooks: { readonly 'task-end': (ended: Pick<TaskRef, 'id'>) => void };
}

export function openUndoFolder(env: NodeJS.ProcessEnv): UndoFolder {
  // Next to the tasks.
  const path = join(dirname(getDefaultSqlitePath(env)), 'undo');
  const removing = new Set<Promise<void>>();
  const cleanups = createCleanupList({ name: 'the undo folder', onError: reportCleanup });
  cleanups.defer(() => Promise.all(removing));
  const forget = (id: string): void => {
    const removal = removeOldContents(path, id).finally(() => removing.delete(removal));
    removing.add(removal);
    removal.catch(() => {});
  };
  return {
    path,
    forget,
    hooks: { 'task-end': ({ id }) => forget(id) },
    [Symbol.asyncDispose]: () => cleanups[Symbol.asyncDispose](),
  };
}

import type { World } from '@whoa/core/embed';
import { createTaskStore, type TaskStore, type TaskStoreConfig } from '@whoa/tasks';
import { createSqliteStore } from '@whoa/tasks/internal';
import { findLossyBus } from './bus/lossy-bus.ts';

/** The store for a child process: a SQLite file, or a configuration as JSON. */
export function openStore(
  location: string,
  more: { maxAttempts?: number; retentionMs?: number; world?: World } = {},
): TaskStore {
  const bus = findLossyBus();
  if (!location.startsWith('{')) return createSqliteStore({ file: location, ...bus, ...more });
  return createTaskStore({ ...(JSON.parse(location) as TaskStoreConfig), ...bus, ...more });
}

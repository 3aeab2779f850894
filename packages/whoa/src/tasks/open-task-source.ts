import { UsageError } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { createStoreSource } from './store-source.ts';
import type { TaskSource } from './task-source.ts';

interface SourceWishes {
  readonly config?: string | undefined;
  readonly server?: string | undefined;
  readonly tenant?: string | undefined;
  readonly 'all-tenants'?: boolean;
}

/** Opens the server of `--server`, otherwise the store of the configuration. */
export async function openTaskSource(wishes: SourceWishes): Promise<TaskSource> {
  const { server, tenant } = wishes;
  if (tenant === '') throw new UsageError('--tenant: expected a name');
  const all = wishes['all-tenants'] === true;
  if (all && tenant !== undefined) throw new UsageError('--tenant and --all-tenants cannot be combined');
  if (server === undefined) return createStoreSource(await loadConfig(wishes.config), { tenant, all });
  if (wishes.config !== undefined) throw new UsageError('--server and --config cannot be combined');
  const { createServerSource } = await import('./server-source.ts');
  return createServerSource(server, { tenant, all });
}

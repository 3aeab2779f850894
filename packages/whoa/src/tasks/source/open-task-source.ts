import { UsageError, type Values } from '../../command.ts';
import { loadConfig } from '../../config/load.ts';
import type { ConnectionContext } from '../../system.ts';
import { createStoreSource } from './store-source.ts';
import type { TaskSource } from './task-source.ts';

type TaskSourceOptions = {
  readonly [Name in keyof typeof SOURCE_OPTIONS]?: Values<typeof SOURCE_OPTIONS>[Name] | undefined;
};

/** The options that choose a task source. */
export const SOURCE_OPTIONS = {
  tenant: { type: 'string' },
  'all-tenants': { type: 'boolean', default: false },
  server: { type: 'string' },
  config: { type: 'string' },
} as const;
export const SOURCE_HELP = `  --tenant NAME   the tenant of the task; defaults to 'local', the tenant of 'whoa run' and 'whoa acp'
  --all-tenants   look for the task in every tenant
  --server URL    use this 'whoa serve' instead of the store, with the token in WHOA_TOKEN
  --config FILE   the configuration file, which may specify another store`;

/** Opens the server of `--server`, otherwise the store of the configuration. */
export async function openTaskSource(options: TaskSourceOptions, surroundings: ConnectionContext): Promise<TaskSource> {
  const { env } = surroundings;
  const { server, tenant } = options;
  if (tenant === '') throw new UsageError('--tenant: expected a name');
  const all = options['all-tenants'] === true;
  if (all && tenant !== undefined) throw new UsageError('--tenant and --all-tenants cannot be combined');
  if (server === undefined)
    return createStoreSource(await loadConfig(options.config, surroundings), { tenant, all, env });
  if (options.config !== undefined) throw new UsageError('--server and --config cannot be combined');
  const { createServerSource } = await import('./server-source.ts');
  return createServerSource(server, { tenant, all, env });
}

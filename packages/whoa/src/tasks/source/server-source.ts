import { createTaskClient, type TaskClient } from '@whoa/server/task-client';
import type { PageRequest } from '@whoa/tasks';
import { UsageError } from '../../command.ts';
import { commandName } from '../../terminal/command-name.ts';
import { createAllTenantsSource } from './all-tenants.ts';
import { MAX_QUESTIONS, type SourceOptions, type TaskSource } from './task-source.ts';
import { TOKEN_VARIABLE } from './token-variable.ts';

/** The tasks of a server that the token in the environment may see. */
export function createServerSource(server: string, { tenant, all, env }: SourceOptions): TaskSource {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:')
    throw new UsageError(`--server: expected a URL such as https://tasks.example.com, got '${server}'`);
  const token = env[TOKEN_VARIABLE];
  if (!token) throw new UsageError(`--server: set ${TOKEN_VARIABLE} to a token of ${url.host}`);
  const createClient = (one: string | undefined): TaskClient =>
    createTaskClient({ url: url.href, token, fetch: explained(url, env), ...(one !== undefined && { tenant: one }) });
  const client = createClient(tenant);
  if (!all) return toSource(client, url.origin);
  const tenants = {
    list: (page: PageRequest) => client.tenants(page),
    open: (one: string) => toSource(createClient(one), url.origin),
  };
  return createAllTenantsSource(tenants, toSource(client, url.origin));
}

function toSource(client: TaskClient, location: string): TaskSource {
  return {
    ...client,
    location,
    stopMode: 'graceful',
    cancel: (id, { reason, mode, undo }) => {
      const preset = typeof mode === 'string' ? mode : 'graceful';
      return client.cancel(id, { mode: preset, undo, ...(reason && { reason }) });
    },
    cancelCall: (id, callId, reason) => client.cancelCall(id, callId, reason ? { reason } : {}),
    questions: () => client.questions({ limit: MAX_QUESTIONS }),
    async follow(id, { onEntry, onTakenBack, token: stopping }) {
      const seen = client.follow(id, stopping && { signal: stopping.signal });
      for await (const one of seen) {
        if (one.type === 'end') return one.task;
        if (one.type === 'taken-back') {
          onTakenBack?.();
          continue;
        }
        const { type: _, ...entry } = one;
        if (onEntry?.(entry as Parameters<typeof onEntry>[0]) === 'stop') break;
      }
      const task = await client.get(id);
      if (task === undefined) throw new Error(`task ${id} has been removed from the server`);
      return task;
    },
    counts: async () => [await client.counts()],
    // The server's own workers free lost tasks.
    reclaimLost: () => Promise.resolve(),
    settleOrphaned: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

/** A `fetch` with errors that tell the user what to do. */
function explained({ origin }: URL, env: NodeJS.ProcessEnv): typeof fetch {
  return async (...args) => {
    const response = await fetch(...args).catch((error: unknown) => {
      const { cause, message } = error as Error & { cause?: { message?: string } };
      throw new Error(`cannot reach ${origin}: ${cause?.message ?? message}`, { cause: error });
    });
    if (response.status !== 401) return response;
    throw new UsageError(`${origin} rejected the token in ${TOKEN_VARIABLE}; '${commandName(env)} serve' shows one`);
  };
}

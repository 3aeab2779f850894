import { SettingsError } from '@whoa/core';
import { settings, waitAtMost } from '@whoa/core/internal';
import type { EngineFactory } from '@whoa/tasks';
import type { ConnectionOptions, RateLimiterOptions } from 'bullmq';
import { createBullmqEngine, type OfferWorkerOptions } from './bullmq-engine.ts';
import { loadLibrary } from './library.ts';
import type { Order } from './offers.ts';

/** Options of BullMQ in `whoa.config.ts`. */
export interface BullmqOptions {
  /** The Redis of the queue: its address, or BullMQ's connection options. */
  readonly connection: string | ConnectionOptions;
  /** The name of the queue. Defaults to `whoa`. */
  readonly queue?: string | undefined;
  /** The prefix of BullMQ's keys. Defaults to `bull`. */
  readonly prefix?: string | undefined;
  /** How many tasks start per `duration` milliseconds, on all workers together. */
  readonly limiter?: RateLimiterOptions | undefined;
  /** Whether tenants take turns (`tenants`, the default), or each task is a job with its priority and delay (`jobs`). */
  readonly order?: Order | undefined;
  /** Further options of BullMQ's worker. The concurrency is that of `whoa worker`. */
  readonly worker?: Omit<OfferWorkerOptions, 'concurrency' | 'connection' | 'limiter' | 'prefix'> | undefined;
}

const MAX_MS = 86_400_000;
/** How long a start or an end waits for the connection. */
const CONNECT_MS = 1_000;

/**
 * BullMQ as the `engine` of `whoa.config.ts`: it delivers the tasks of all agents.
 *
 * @returns What the configuration expects. `whoa serve` and `whoa worker` connect with it.
 * @throws {@link SettingsError} when an option is invalid.
 *
 * @example
 * ```ts
 * import { bullmq } from '@whoa/bullmq';
 * import { defineConfig } from 'whoa';
 *
 * export default defineConfig({
 *   store: 'postgres://localhost/whoa',
 *   engine: bullmq({ connection: 'redis://localhost:6379', limiter: { max: 10, duration: 1_000 } }),
 * });
 * ```
 */
export function bullmq(options: BullmqOptions): EngineFactory {
  const { connection, queue: name = 'whoa', prefix, limiter, order, worker } = readOptions(options);
  return async ({ store, agents, onError }) => {
    const { Queue } = await loadLibrary();
    const server = typeof connection === 'string' ? { url: connection } : connection;
    const queue = new Queue(name, { connection: server, ...(prefix !== undefined && { prefix }) });
    queue.on('error', onError);
    const closeQueue = (): Promise<void> => waitAtMost(queue.close(), CONNECT_MS);
    const engine = createBullmqEngine({ store, queue, agents, order });
    try {
      // Without a server it waits again later. A wrong driver or an old server fails here.
      await waitAtMost(queue.waitUntilReady(), CONNECT_MS);
      // A store that is away for now: `serve` starts it, and the workers offer what this process makes ready.
      await engine.start().catch((error: unknown) => {
        if (error instanceof SettingsError) throw error;
        onError(error);
      });
    } catch (error) {
      await engine[Symbol.asyncDispose]();
      await closeQueue();
      throw error;
    }
    return {
      serve: (runner, given) => engine.serve(runner, { ...worker, ...(limiter && { limiter }), ...given }),
      isReady: () => engine.isReady(),
      close: (mode) => engine.close(mode),
      async [Symbol.asyncDispose]() {
        await engine.close('now');
        await closeQueue();
      },
    };
  };
}

function readOptions(options: BullmqOptions): BullmqOptions {
  const count = settings.count();
  return settings.readSettings<BullmqOptions>(
    options,
    {
      connection: settings.required(
        settings.rule("'redis://host:6379', or connection options of BullMQ such as { host, port }", isConnection),
      ),
      // BullMQ builds keys with colons.
      queue: settings.rule('a name without colons', (value) => typeof value === 'string' && /^[^:]+$/.test(value)),
      prefix: settings.nonEmptyText,
      limiter: settings.group<RateLimiterOptions>({
        max: settings.required(count),
        duration: settings.required(settings.boundedMs({ max: MAX_MS })),
      }),
      order: settings.oneOf('tenants', 'jobs'),
      worker: readWorker,
    },
    { within: 'bullmq' },
  );
}

function isConnection(value: unknown): boolean {
  if (typeof value !== 'string') return settings.isObject(value) && !Array.isArray(value);
  return /^rediss?:\/\/[^/]/.test(value) && URL.canParse(value);
}

/** Options of BullMQ's worker that have another place. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  concurrency: 'use --concurrency of the command',
  connection: 'write it next to worker',
  limiter: 'write it next to worker',
  prefix: 'write it next to worker',
  autorun: 'the engine sets it',
  maxStalledCount: 'the store counts crashes',
  maxStartedAttempts: 'the store counts attempts',
};

const WORKER = settings.rule(
  "an object with options of BullMQ's worker, such as { lockDuration: 30_000 }",
  (value) => settings.isObject(value) && !Array.isArray(value),
);

function readWorker(value: unknown, field: string): unknown {
  const wrong = Object.keys(WORKER(value, field) as object).find((name) => Object.hasOwn(ELSEWHERE, name));
  if (wrong !== undefined) throw new SettingsError(`${field}.${wrong}`, `not allowed here; ${ELSEWHERE[wrong]}`);
  return value;
}

import { systemWorld, type World } from '@whoa/core/embed';
import type { Bus } from '../bus/bus.ts';
import { ChangeNotifier } from '../bus/notifier.ts';
import { openBus } from '../bus/open-bus.ts';
import { PostgresBus } from '../bus/postgres-bus.ts';
import type { TaskStore } from '../store.ts';
import { createCheckedStore } from './checked/checked-store.ts';
import { checkDuration, checkLimit } from './checked/checks.ts';
import { Database, type NamedValues } from './postgres/connection/database.ts';
import { checkSchema } from './postgres/layout.ts';
import {
  CONNECT_TIMEOUT_MS,
  MAX_CONNECTIONS,
  POLL_MS,
  type PostgresStoreOptions,
  STATEMENT_TIMEOUT_MS,
} from './postgres/options.ts';
import { PostgresDriver } from './postgres/store-driver.ts';
import { createStoreRules, toRetention } from './store-rules.ts';

/** Each notification wakes every process: with many of them, words wait longer for each other. */
const toPulse = (inboxes: number): number => 2.5 * inboxes;

export type { PostgresStoreOptions } from './postgres/options.ts';

/**
 * Creates a store in a PostgreSQL database (13 or newer), for any number of machines. Acknowledged changes are on disk.
 * It connects on first use.
 *
 * @returns The store.
 * @throws TypeError or RangeError when an option is invalid; {@link StoreSetupError}, from its methods, when `pg` is
 * not installed or the database cannot be used.
 */
export function createPostgresStore(options: PostgresStoreOptions = {}): TaskStore {
  const { url, schema = 'whoa', pollIntervalMs = POLL_MS } = options;
  const world: World = options.world ?? systemWorld;
  const rules = createStoreRules(options);
  checkSchema(schema);
  const timeouts = {
    connectTimeoutMs: checkDuration('connectTimeoutMs', options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS),
    statementTimeoutMs: checkDuration('statementTimeoutMs', options.statementTimeoutMs ?? STATEMENT_TIMEOUT_MS),
  };
  const database = new Database({
    ...timeouts,
    url,
    schema,
    maxConnections: checkLimit('maxConnections', options.maxConnections ?? MAX_CONNECTIONS),
    given: rules.given,
    onSettings: (held) => Object.assign(rules, toRetention(held)),
    caps: { tenant: rules.maxRunningPerTenant, agent: rules.maxRunningPerAgent },
  });
  const call = async <T>(operation: string, name: string, values: NamedValues): Promise<T> =>
    (await database.ask<T>({ operation, changes: false, name, values })).answer;
  const own = (): Bus =>
    new PostgresBus({
      server: { ...timeouts, url: options.listenUrl ?? url },
      clock: world.clock,
      pollIntervalMs: checkDuration('pollIntervalMs', pollIntervalMs),
      notify: (channels, payloads) => call('notify', 'notify_all', { channels, payloads }),
    });
  const notifier = new ChangeNotifier({
    ...openBus(options.bus, { kind: 'postgres', open: own }),
    pulseMs: options.bus === undefined ? toPulse : undefined,
    interests: {
      express: (inbox, names, forMs) => call('watch', 'express', { own_inbox: inbox, names, for_ms: forMs }),
      withdraw: (inbox, names) => call('watch', 'withdraw', { own_inbox: inbox, names }),
    },
  });
  return createCheckedStore(new PostgresDriver({ database, notifier, rules }), { rules, world });
}

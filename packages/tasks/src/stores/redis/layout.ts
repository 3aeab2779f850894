import { StoreSetupError } from '../../errors.ts';
import { FORMAT, wrongFormat } from '../../rules/format.ts';
import type { StoredSettings } from '../driver.ts';
import type { Connection, Sent } from './connection/connection.ts';
import { type OperationName, toList } from './operations.ts';
import { getGenerations, PREFIX, type RedisStoreOptions, STORED, toTag } from './options.ts';
import { parseErrorCode } from './replies/refusals.ts';

const ASK_MS = 2_000;

/** Runs an operation on the first shard. */
type Run = (name: OperationName, values: readonly (string | number)[]) => Promise<Sent>;

/**
 * Compares the shard layout with what the first client wrote; if none has, writes it. Returns the format and the settings
 * that the store holds, or a transport failure. Throws if the layout differs.
 */
export async function checkLayout(
  run: Run,
  { prefix = PREFIX, ...options }: RedisStoreOptions,
  given: StoredSettings,
): Promise<{ readonly failed: Sent } | { readonly format: number; readonly settings: StoredSettings }> {
  const shards = getGenerations(options).join(',');
  const wanted = STORED.map((name) => `${given[name] ?? ''}`);
  const isHeld = ([format, , ...held]: string[]): boolean =>
    format !== '' && wanted.every((value, i) => value === '' || value === held[i]);
  let sent = await run('readLayout', []);
  if ('reply' in sent && !isHeld(sent.reply as string[])) {
    sent = await run('writeLayout', toList('writeLayout', { newFormat: FORMAT, shards, list: wanted }));
  }
  if (!('reply' in sent)) return { failed: sent };
  if ((sent.reply as string[])[0] === 'anchor') {
    const key = toTag(prefix, 0);
    throw new StoreSetupError(`The key '${key}' must not exist: a shard that moves would lose tasks; delete it`);
  }
  const [format, found, ...held] = sent.reply as [string, string, ...string[]];
  if (wrongFormat(Number(format)) !== undefined) throw otherFormat(format, prefix);
  // All counts before the last must match.
  if (!`${shards},`.startsWith(`${found},`)) throw otherShards(found, prefix);
  const settings = STORED.flatMap((name, i) => (held[i] ? [[name, Number(held[i])]] : []));
  return { format: Number(format), settings: Object.fromEntries(settings) as StoredSettings };
}

/** The error for a client with a different shard count. */
export function otherShards(found: string, prefix: string): StoreSetupError {
  const counts = found.split(',');
  const shards = counts.length === 1 ? found : `[${counts.join(', ')}]`;
  return new StoreSetupError(
    `shards: the tasks ${describePrefix(prefix)} are spread over ${counts.at(-1)} shards; configure every client with shards: ${shards}`,
  );
}

/** The error for a format that this version cannot use. */
export function otherFormat(format: string, prefix: string): StoreSetupError {
  return new StoreSetupError(`The store ${describePrefix(prefix)} ${wrongFormat(Number(format))}`);
}

function describePrefix(prefix: string): string {
  return `in Redis under prefix '${prefix}'`;
}

/** Throws if the server evicts keys when it is full. A server that does not reveal its policy is trusted. */
export async function checkEviction(connection: Connection): Promise<{ readonly failed: Sent } | undefined> {
  const sent = await connection.send((client) => client.info('memory'), ASK_MS);
  if ('refused' in sent && parseErrorCode(sent.refused) === 'NOPERM') return undefined;
  if (!('reply' in sent)) return { failed: sent };
  const policy = /^maxmemory_policy:(\S+)/m.exec(String(sent.reply))?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return undefined;
  throw new StoreSetupError(
    `The Redis server evicts keys (maxmemory-policy ${policy}), which loses tasks; set it to noeviction`,
  );
}

import type { RedisStoreOptions } from '../options.ts';
import { nodeOptions, serverOptions } from './addresses.ts';
import { ClusterRoutes } from './cluster.ts';
import type { Routes } from './connection.ts';
import { Connection, type ConnectionEvents, loadLibrary } from './connection.ts';

export async function openRoutes(options: RedisStoreOptions, events: ConnectionEvents): Promise<Routes> {
  const library = await loadLibrary();
  if (options.cluster) {
    return new ClusterRoutes(options, (address) => new Connection(library, nodeOptions(options, address), events));
  }
  const connection = new Connection(library, serverOptions(options), events);
  return {
    at: () => connection,
    move: () => {},
    refresh: () => {},
    refreshed: () => Promise.resolve(),
    close: () => connection.close(),
  };
}

import type { RedisStoreOptions } from '../options.ts';
import { nodeOptions, serverOptions } from './addresses.ts';
import { ClusterRoutes } from './cluster.ts';
import type { Routes } from './connection.ts';
import { Connection, loadLibrary } from './connection.ts';

export async function openRoutes(options: RedisStoreOptions): Promise<Routes> {
  const library = await loadLibrary();
  if (options.cluster) {
    return new ClusterRoutes(options, (address) => new Connection(library, nodeOptions(options, address)));
  }
  const connection = new Connection(library, serverOptions(options));
  return {
    at: () => connection,
    move: () => {},
    refresh: () => {},
    refreshed: () => Promise.resolve(),
    close: () => connection.close(),
  };
}

import { createNamespace, type Namespace } from '../servers/namespaces.ts';
import { type Address, type Proxy as NetworkProxy, startProxy } from '../servers/proxy.ts';

/** How a worker in its own network namespace reaches the store. */
export interface NetworkLink {
  readonly namespace: Namespace;
  /** Forwards from our end of the link to the store. */
  readonly proxy: NetworkProxy;
  /** Forwards to the queue in front of the store, if there is one. */
  readonly front?: NetworkProxy;
}

/** Creates links to the store, or none if it has no address. */
export async function createLinks(
  to: Address | undefined,
  count: number,
  front?: Address,
): Promise<AsyncDisposable & { readonly all: readonly NetworkLink[] }> {
  const all: NetworkLink[] = [];
  for (let i = 0; to !== undefined && i < count; i++) {
    const namespace = createNamespace();
    const queue = front && { front: await startProxy(front, namespace.host) };
    all.push({ namespace, proxy: await startProxy(to, namespace.host), ...queue });
  }
  return {
    all,
    async [Symbol.asyncDispose]() {
      for (const { namespace, proxy, front: queue } of all) {
        await queue?.[Symbol.asyncDispose]();
        await proxy[Symbol.asyncDispose]();
        namespace[Symbol.dispose]();
      }
    },
  };
}

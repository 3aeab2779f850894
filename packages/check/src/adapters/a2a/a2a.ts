import type { Client } from '@a2a-js/sdk/client';
import type { Adapter, Features } from '../../adapter.ts';
import { type AgentServerOptions, createServerAdapter } from '../agent-server.ts';
import { loadLibrary } from '../load-library.ts';
import { A2aConnection } from './connection.ts';

const CONTEXTS = 'the protocol leaves it to agents whether they remember a context';

const FEATURES: Features = {
  cancel: true,
  conversation: CONTEXTS,
  'one-piece': 'a cancel is another request',
  outcome: true,
  calls: 'a task does not show the calls of its agent',
  'cancel-by-id': true,
  'cancel-request': 'there is only one way to cancel',
  close: CONTEXTS,
  status: true,
};

/**
 * Checks an agent that supports A2A, by the official client. `url` is where its agent card is found.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createA2aAdapter(options: AgentServerOptions): Adapter {
  const connect = async (url: string): Promise<A2aConnection> => {
    const client = await createClient(url, options);
    const { name, version } = await client.getAgentCard();
    return new A2aConnection(client, `${name} ${version}`.trim());
  };
  return createServerAdapter({ protocol: 'a2a', features: FEATURES, connect }, options);
}

async function createClient(url: string, { headers = {} }: AgentServerOptions): Promise<Client> {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } = await loadLibrary(
    '@a2a-js/sdk',
    () => import('@a2a-js/sdk/client'),
  );
  const fetchImpl: typeof fetch = (input, init) => {
    const all = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    return fetch(input, { ...init, headers: all });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(url);
}

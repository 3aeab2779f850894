import type { Client } from '@a2a-js/sdk/client';
import type { Adapter, Features } from '../../adapter.ts';
import type { Stage } from '../../stage/stage.ts';
import { type AgentServer, type AgentServerOptions, AgentServers } from '../agent-server.ts';
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
 * Checks an agent that speaks A2A, by the official client. `url` is where its agent card is found.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createA2aAdapter(options: AgentServerOptions): Adapter {
  const servers = new AgentServers(options);
  const { first, second } = servers;
  const connect = async (server: AgentServer, stage: Stage, owned?: AsyncDisposable): Promise<A2aConnection> => {
    const client = await createClient(await server.reach(stage), options);
    const { name, version } = await client.getAgentCard();
    return new A2aConnection({ client, agent: `${name} ${version}`.trim(), process: server.process, owned });
  };
  return {
    protocol: 'a2a',
    features: { ...FEATURES, ...servers.features },
    connect: (stage) => connect(first, stage),
    // It runs only while it is needed: it could take over what the first one leaves when that one is killed.
    ...(second !== undefined && { connectSecond: (stage: Stage) => connect(second, stage, second) }),
    ...(options.command !== undefined && { restart: () => first.restart() }),
    [Symbol.asyncDispose]: () => servers[Symbol.asyncDispose](),
  };
}

async function createClient(url: string, { headers = {} }: AgentServerOptions): Promise<Client> {
  const { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory } =
    await loadLibrary();
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

async function loadLibrary(): Promise<typeof import('@a2a-js/sdk/client')> {
  try {
    return await import('@a2a-js/sdk/client');
  } catch (error) {
    throw new Error('Checking A2A needs its library: npm install @a2a-js/sdk', { cause: error });
  }
}

// One process of a scenario that needs several: node role.ts ADAPTER ROLE OPTIONS. Prints the role's result.
import type { OpenOptions, Peer } from './peer.ts';
import { PeerTools } from './tools.ts';

export interface RoleOptions {
  readonly folder: string;
  readonly id?: string;
  readonly url?: string;
  /** The port of the probe. */
  readonly port?: number;
}

const [module = '', role = '', json = '{}'] = process.argv.slice(2);
const { peer } = (await import(module)) as { peer: Peer };
const { folder, id = '', url = '', port = 0 } = JSON.parse(json) as RoleOptions;
const { elsewhere } = peer;
if (elsewhere === undefined) throw new Error(`${peer.name} has no runs that other processes can see`);

if (role === 'work') {
  const options: OpenOptions = { url, wire: peer.wires[0]!, tools: [new PeerTools(port).polite()] };
  process.stdin.resume();
  await elsewhere.work(folder, options);
} else if (role === 'enqueue') console.log(await elsewhere.enqueue(folder));
else if (role === 'cancel') await elsewhere.cancel(folder, id);
else console.log(await elsewhere.status(folder, id));

// Runs one scenario with one library and prints the observations: node run-scenarios.ts ADAPTER SCENARIO TIMES
import type { Peer } from './core/peer.ts';
import { repeat } from './core/repeat.ts';
import { scenarios } from './scenarios/all.ts';

const [module = '', id = '', times = '1'] = process.argv.slice(2);
const scenario = scenarios.find((one) => one.id === id);
if (scenario === undefined) throw new Error(`No such scenario: ${id}`);
const { peer } = (await import(module)) as { peer: Peer };
const observation = await repeat(scenario, { peer, module, times: Number(times) });
process.stdout.write(`\n${JSON.stringify(observation)}\n`, () => process.exit(0));

// Runs many commands in one process, as `bin.ts` runs one: starting a process for each would take minutes. Prints a
// line before each.
import { readFileSync } from 'node:fs';
import { main } from '../../packages/whoa/src/main.ts';
import { guardTerminal } from '../../packages/whoa/src/terminal/boundary.ts';

guardTerminal(process.stdout);
guardTerminal(process.stderr);
const [file = ''] = process.argv.slice(2);
for (const [name, ...args] of JSON.parse(readFileSync(file, 'utf8')) as readonly (readonly [string, ...string[]])[]) {
  process.stdout.write(`=== ${name}\n`);
  await main(args);
}
process.exit(0);

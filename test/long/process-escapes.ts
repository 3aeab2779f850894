// Runs every escape with every technique for every user, here and inside another PID namespace:
//   npm run long -- process-escapes [ROUNDS] [--forkers N] [--only TEXT] [--minutes N]
// With --forkers beside N loops that start and end processes all the time. --only chooses users by a part of their name.
// --minutes repeats it for that long, with a sum for each user at the end.
import { spawn } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { ENVIRONMENTS, runIn } from '../process-escapes/environments.ts';
import { type Cell, findUnreported, formatEscapes, summarize } from '../process-escapes/table.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    forkers: { type: 'string', default: '0' },
    only: { type: 'string', default: '' },
    minutes: { type: 'string', default: '0' },
  },
});
const rounds = Number(positionals[0] ?? 30);
const until = Date.now() + Number(values.minutes) * 60_000;
const loops = Array.from({ length: Number(values.forkers) }, () =>
  spawn('sh', ['-c', 'while :; do /bin/true; done'], { stdio: 'ignore' }),
);
const environments = ENVIRONMENTS.filter(({ name }) => name.includes(values.only));
const all = new Map<string, Cell[]>(environments.map(({ name }) => [name, []]));
try {
  do {
    for (const environment of environments) {
      const cells = await runIn(environment, rounds);
      all.get(environment.name)!.push(...cells);
      console.log(`── ${environment.name}, ${loops.length} forking loops\n${formatEscapes(cells)}\n`);
    }
  } while (Date.now() < until);
} finally {
  for (const loop of loops) loop.kill('SIGKILL');
}
let broken = 0;
for (const [name, cells] of all) {
  console.log(
    `── ${name}: load ${loadavg()[0]!.toFixed(1)} on ${availableParallelism()} cores, ${loops.length} forking loops`,
  );
  console.log(summarize(cells));
  broken += findUnreported(cells).length;
}
process.exitCode = broken === 0 ? 0 : 1;

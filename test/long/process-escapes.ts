// Runs every escape for every user, here and inside another PID namespace: npm run long -- process-escapes [ROUNDS]
import { ENVIRONMENTS, runIn } from '../process-escapes/environments.ts';
import { findUnreported, formatEscapes } from '../process-escapes/table.ts';

const rounds = Number(process.argv[2] ?? 30);
let broken = 0;
for (const environment of ENVIRONMENTS) {
  const cells = await runIn(environment, rounds);
  const unreported = findUnreported(cells).length;
  const unproved = cells.flatMap((cell) => cell.rounds).filter(({ verified }) => verified === 'no').length;
  broken += unreported;
  console.log(`── ${environment.name}\n${formatEscapes(cells)}`);
  console.log(
    `${cells.length} cells, ${unreported} with survivors nobody was told of; ${unproved} of ${cells.length * rounds} ends not proved\n`,
  );
}
process.exitCode = broken === 0 ? 0 : 1;

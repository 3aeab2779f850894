// Plays the zoo for every user, here and inside another PID namespace: npm run long -- zoo [ROUNDS]
import { PLACES, playIn } from '../zoo/places.ts';
import { findUnreported, formatZoo } from '../zoo/table.ts';

const rounds = Number(process.argv[2] ?? 30);
let broken = 0;
for (const place of PLACES) {
  const cells = await playIn(place, rounds);
  const unreported = findUnreported(cells).length;
  const unproved = cells.flatMap((cell) => cell.rounds).filter(({ verified }) => verified === 'no').length;
  broken += unreported;
  console.log(`── ${place.name}\n${formatZoo(cells)}`);
  console.log(
    `${cells.length} cells, ${unreported} with survivors nobody was told of; ${unproved} of ${cells.length * rounds} ends not proved\n`,
  );
}
process.exitCode = broken === 0 ? 0 : 1;

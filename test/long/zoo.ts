// Plays the zoo 30 rounds: npm run long -- zoo [ROUNDS]
import { formatZoo, playZoo } from '../zoo/table.ts';

const rounds = Number(process.argv[2] ?? 30);
const cells = await playZoo(rounds);
console.log(formatZoo(cells));
const broken = cells.filter((cell) => cell.isPromised && cell.rounds.some(({ survivors }) => survivors > 0));
const unproved = cells.flatMap((cell) => cell.rounds).filter(({ verified }) => verified === 'no').length;
console.log(`${broken.length} promises broken, ${unproved} of ${cells.length * rounds} ends not proved`);
process.exitCode = broken.length === 0 ? 0 : 1;

// Plays the zoo as whoever started this: node test/zoo/play.ts ROUNDS
import { playZoo } from './table.ts';

process.stdout.write(JSON.stringify(await playZoo(Number(process.argv[2]))));

// Plays every escape as whoever started this: node test/process-escapes/play.ts ROUNDS
import { runEscapes } from './table.ts';

process.stdout.write(JSON.stringify(await runEscapes(Number(process.argv[2]))));

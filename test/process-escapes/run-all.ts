// Runs every escape as the current user: node test/process-escapes/run-all.ts ROUNDS
import { runEscapes } from './table.ts';

process.stdout.write(JSON.stringify(await runEscapes(Number(process.argv[2]))));

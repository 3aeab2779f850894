#!/usr/bin/env node
import { keepCompiled } from './compiled.ts';

keepCompiled();
// Node warns that SQLite and type stripping are experimental. Hide that: users of the command cannot act on it.
const warn = process.emitWarning.bind(process) as (...args: unknown[]) => void;
process.emitWarning = (...args: unknown[]) => {
  if (args[1] !== 'ExperimentalWarning') warn(...args);
};
if (process.stdout.isTTY || process.stderr.isTTY) {
  const { guardTerminal } = await import('./terminal/boundary.ts');
  for (const stream of [process.stdout, process.stderr]) guardTerminal(stream);
}
// Import this only after the compile cache is enabled, so that it is cached too.
const { main } = await import('./main.ts');
const code = await main(process.argv.slice(2));
// Exit explicitly: abandoned work may keep the process alive. Flush the output first, but don't wait for a reader that
// has stopped reading.
const LAST_WRITE_MS = 1_000;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', () => {});
  const late = setTimeout(() => process.exit(code), LAST_WRITE_MS);
  await new Promise((resolve) => stream.write('', resolve));
  clearTimeout(late);
}
process.exit(code);

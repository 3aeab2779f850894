#!/usr/bin/env node
import { keepCompiled } from './compiled.ts';

keepCompiled();
// Node announces parts of itself (SQLite, types in a config file) as experimental. That is no news for whoever runs a command.
const warn = process.emitWarning.bind(process) as (...args: unknown[]) => void;
process.emitWarning = (...args: unknown[]) => {
  if (args[1] !== 'ExperimentalWarning') warn(...args);
};
if (process.stdout.isTTY || process.stderr.isTTY) {
  const { guardTerminal } = await import('./terminal/boundary.ts');
  for (const stream of [process.stdout, process.stderr]) guardTerminal(stream);
}
// Loaded after the cache is on, so that it is cached too.
const { main } = await import('./main.ts');
const code = await main(process.argv.slice(2));
// What was abandoned may keep the process alive for as long as it likes; what was printed must get out first, unless its
// reader takes nothing.
const LAST_WRITE_MS = 1_000;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', () => {});
  const late = setTimeout(() => process.exit(code), LAST_WRITE_MS);
  await new Promise((resolve) => stream.write('', resolve));
  clearTimeout(late);
}
process.exit(code);

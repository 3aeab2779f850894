// Runs one benchmark: npm run bench -- NAME [--json]. Benchmarks measure the build, so build first.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findUnbuilt } from './stale-build.ts';

const folder = join(import.meta.dirname, '../bench');
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -3));
const [name = '', ...args] = process.argv.slice(2);
if (!names.includes(name)) {
  console.error(`bench: name one of ${names.join(', ')}, for example: npm run bench -- ${names[0]} --json`);
  process.exit(2);
}
const unbuilt = findUnbuilt(join(import.meta.dirname, '..'));
if (unbuilt !== undefined) {
  console.error(`bench: ${unbuilt} is newer than the build, which is what is measured; run: npm run build`);
  process.exit(2);
}
const { status } = spawnSync(process.execPath, ['--expose-gc', '--no-warnings', join(folder, `${name}.ts`), ...args], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

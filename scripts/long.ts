// Runs one campaign that is too long for CI: npm run long -- NAME.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

const folder = join(import.meta.dirname, '../test/long');
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -3));
const [name = '', ...args] = process.argv.slice(2);
if (!names.includes(name)) {
  console.error(`long: name one of ${names.join(', ')}, for example: npm run long -- ${names[0]}`);
  process.exit(2);
}
const flags = ['--conditions=@whoa/source', '--expose-gc', '--no-warnings'];
const { status } = spawnSync(process.execPath, [...flags, join(folder, `${name}.ts`), ...args], { stdio: 'inherit' });
process.exitCode = status ?? 1;

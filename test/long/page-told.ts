// How soon another browser shows what a page does (test/web/histories):
//   npm run long -- page-told [ROUNDS] [memory|postgres]
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const program = join(import.meta.dirname, '../web/histories/told.ts');
const { status } = spawnSync(process.execPath, [...process.execArgv, program, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

// Random histories of a page (test/web/histories):
//   npm run long -- page-histories [COUNT] [SEED] [memory|sqlite|postgres|own] [--plant forget|stop-any]
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const program = join(import.meta.dirname, '../web/histories/page-histories.ts');
const { status } = spawnSync(process.execPath, [...process.execArgv, program, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

// What a user does while the server is away (test/web/histories):
//   npm run long -- stop-away [SECONDS] [COUNT] [cut|silent] [stop|yes|output|message]
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const program = join(import.meta.dirname, '../web/histories/stop-away.ts');
const { status } = spawnSync(process.execPath, [...process.execArgv, program, ...process.argv.slice(2)], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;

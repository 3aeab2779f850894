// 100,000 calls on paths that another process swaps for links outside: npm run long -- swapped-paths [calls]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { swapPaths } from '../campaigns/swapped-paths.ts';

const folder = mkdtempSync(join(tmpdir(), 'whoa-swaps-'));
try {
  const result = await swapPaths(folder, Number(process.argv[2] ?? 100_000));
  console.log(result);
  process.exitCode = result.escapes === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}

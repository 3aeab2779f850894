// A 64 MB file written and cancelled 200 times: npm run long -- cancelled-writes [rounds]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cancelWrites } from '../campaigns/cancelled-writes.ts';

const folder = mkdtempSync(join(tmpdir(), 'whoa-writes-'));
try {
  const rounds = Number(process.argv[2] ?? 200);
  const result = await cancelWrites({ folder, rounds, bytes: 64_000_000, random: Math.random });
  console.log(result);
  process.exitCode = result.faults.length === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true });
}

// The contract, the journeys and the simulation with a bus that loses, doubles, delays and reorders messages.
//   npm run long -- buses [--part contract|simulation|journeys] [--bus drops|disorders] [--seeds N] [JOURNEY...]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatContractReports, runStoreContract, sqliteStoreKind } from '@whoa/tasks/testing';
import { startPostgres } from '../servers/postgres.ts';
import { openPostgresKind } from '../servers/postgres-kind.ts';
import { withLossyBus } from '../tasks/contract/lossy-kind.ts';

const root = join(import.meta.dirname, '../..');
const JOURNEYS = [
  ...['P1-', 'P2-', 'P3-', 'P5-', 'P8-', 'P9-', 'P10-', 'P14-'].map((name) => `test/promises/${name}`),
  'test/web/chat-journey',
  'test/web/rolling-restart',
  'test/tasks/follow',
];
const PROFILES = ['delivery', 'mixed', 'suspends', 'poison', 'provider'];
const { values, positionals } = parseArgs({
  options: { part: { type: 'string' }, bus: { type: 'string' }, seeds: { type: 'string', default: '1000' } },
  allowPositionals: true,
});
const isWanted = (part: string): boolean => (values.part ?? part) === part;
const buses = ['drops', 'disorders'].filter((bus) => (values.bus ?? bus) === bus);

const failed: string[] = [];
const note = (name: string, isFine: boolean): void => {
  console.log(`${isFine ? 'ok  ' : 'FAIL'} ${name}`);
  if (!isFine) failed.push(name);
};

if (isWanted('contract')) {
  await using server = await startPostgres();
  await using postgres = await openPostgresKind(server.url);
  for (const kind of [sqliteStoreKind, postgres])
    for (const bus of buses) {
      const report = await runStoreContract(withLossyBus(kind, bus === 'drops' ? 'gaps' : 'disorders'));
      console.log(formatContractReports([report]));
      note(`the contract: ${report.store}`, report.failed.length === 0);
    }
}
for (const bus of buses) {
  for (const profile of isWanted('simulation') ? PROFILES : []) {
    const args = ['run', '-s', 'simulate', '--', '--seeds', values.seeds, '--profile', profile, '--bus', bus];
    note(`the simulation: ${profile}, ${bus}`, spawnSync('npm', args, { cwd: root, stdio: 'inherit' }).status === 0);
  }
  if (!isWanted('journeys')) continue;
  const folder = mkdtempSync(join(tmpdir(), 'whoa-lossy-'));
  const file = join(folder, 'bus');
  writeFileSync(file, '');
  const env = { ...process.env, LOSSY_BUS: bus, LOSSY_BUS_FILE: file };
  for (const journey of positionals.length > 0 ? positionals : JOURNEYS) {
    const args = ['vitest', 'run', '--project', 'integration*', '--maxWorkers', '1', journey];
    note(`${journey}: ${bus}`, spawnSync('npx', args, { cwd: root, stdio: 'inherit', env }).status === 0);
  }
  rmSync(folder, { recursive: true });
}
console.log(failed.length === 0 ? 'nothing failed' : `failed: ${failed.join('; ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;

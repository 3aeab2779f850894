// The cost of a change to the SQL rules: the database's processor time for each operation, for this build and another, in
// turns on one server. Name the other checkout, in which packages/tasks is built: npm run bench -- store-rules-postgres FOLDER
import { readFileSync } from 'node:fs';
import { createPostgresStore } from '@whoa/tasks/internal';
import pg from 'pg';
import { startPostgres } from '../test/servers/postgres.ts';
import { compareRules, importOther } from './stores/rule-costs.ts';

const other = await importOther();
await using server = await startPostgres();
await using admin = await connect(server.url);
const options = { url: server.url, maxConnections: 8 };
await using ours = createPostgresStore({ ...options, schema: 'ours' });
await using theirs = other.createTaskStore({ backend: 'postgres', ...options, schema: 'theirs' });
await compareRules({ ours, theirs, getMicros: admin.getMicros, unit: 'µs of server CPU', getGoal: () => 1.05 });

/** The processor time of all connections but its own. */
async function connect(url: string): Promise<AsyncDisposable & { getMicros: () => Promise<number> }> {
  const client = new pg.Client(url);
  await client.connect();
  return {
    async getMicros() {
      const { rows } = await client.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
      );
      const nanos = rows.map(({ pid }) => Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]));
      return nanos.reduce((sum, one) => sum + one, 0) / 1_000;
    },
    [Symbol.asyncDispose]: () => client.end(),
  };
}

// The configuration of every server and every worker of a deployment. Add your agents here.
import { bullmq } from '@whoa/bullmq';
import { defineConfig } from 'whoa';

const { STORE_URL, BUS_URL, ENGINE_URL } = process.env;
if (STORE_URL === undefined) throw new Error('set STORE_URL to postgres://user:password@host/database');
// They may contain a password: commands of agents must not see it.
delete process.env['STORE_URL'];
delete process.env['BUS_URL'];
delete process.env['ENGINE_URL'];

export default defineConfig({
  // Without the address of a Redis, the processes hear of changes through Postgres.
  store: BUS_URL ? { backend: 'postgres', url: STORE_URL, bus: BUS_URL } : STORE_URL,
  // Without an address, tasks come from the store itself.
  ...(ENGINE_URL && { engine: bullmq({ connection: ENGINE_URL }) }),
  // The grace periods in compose.yaml and kubernetes/ follow from this.
  stopMode: { drainMs: 10_000, abortMs: 2_000 },
  // Longer than a load balancer takes to notice that a server is not ready.
  drainMs: 10_000,
});

// The configuration of every server and every worker of a deployment. Add your agents here.
import { bullmq } from '@whoa/bullmq';
import { defineConfig } from 'whoa';

const { STORE_URL, ENGINE_URL } = process.env;
if (STORE_URL === undefined)
  throw new Error('set STORE_URL to redis://host:6379 or postgres://user:password@host/database');
// They may contain a password: commands of agents must not see it.
delete process.env['STORE_URL'];
delete process.env['ENGINE_URL'];

export default defineConfig({
  store: STORE_URL,
  // Without an address, tasks come from the store itself.
  ...(ENGINE_URL && { engine: bullmq({ connection: ENGINE_URL }) }),
  // The grace periods in compose.yaml and kubernetes/ follow from this.
  stopMode: { drainMs: 10_000, abortMs: 2_000 },
  // Longer than a load balancer takes to notice that a server is not ready.
  drainMs: 10_000,
});

// The configuration of every server and every worker of a deployment. Add your agents here.
import { defineConfig } from 'whoa';

const { STORE_URL } = process.env;
if (STORE_URL === undefined)
  throw new Error('set STORE_URL to redis://host:6379 or postgres://user:password@host/database');
// It may contain a password: commands of agents must not see it.
delete process.env['STORE_URL'];

export default defineConfig({
  store: STORE_URL,
  // The grace periods in compose.yaml and kubernetes/ follow from this.
  ladder: { drainMs: 10_000, abortMs: 2_000 },
});

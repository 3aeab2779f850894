// A worker of the agents that the console's tests start.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRunner } from '@whoa/tasks';
import { createContainment } from '@whoa/tools';
import { openStore } from '../../tasks/open-store.ts';
import { createConsoleAgents, makeWorkspace } from '../agents.ts';

const [location = ''] = process.argv.slice(2);
const cwd = mkdtempSync(join(tmpdir(), 'whoa-console-'));
makeWorkspace(cwd);
const containment = createContainment();
const store = openStore(location);
const { agents, approvals } = createConsoleAgents({ cwd, containment });
const runner = createRunner({ store, agents, approvals });
process.once('SIGTERM', () => {
  runner[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(() => containment[Symbol.asyncDispose]())
    .then(() => rmSync(cwd, { recursive: true }))
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
await runner.serve({ concurrency: 50 });
process.send?.({ type: 'serving' });

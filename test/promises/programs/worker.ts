// A separate worker: takes what is due on a store and runs the test agent, until it is stopped or killed.
import { join } from 'node:path';
import { createRunner } from '@whoa/tasks';
import { createBashTool, createContainment, createFileTools } from '@whoa/tools';
import { openStore } from '../../tasks/open-store.ts';
import { createTestAgent } from '../test-agent.ts';

const [location = '', url = '', folder = '', leaseMs = '', pollIntervalMs = ''] = process.argv.slice(2);
const containment = createContainment();
const tools = [
  createBashTool({ cwd: folder, containment }),
  ...createFileTools({ root: folder, undoFolder: join(folder, '.undo') }),
];
const { agent } = createTestAgent({ url, folder, tools });
const store = openStore(location);
const runner = createRunner({
  store,
  agents: { tester: agent },
  leaseMs: Number(leaseMs),
  pollIntervalMs: Number(pollIntervalMs),
});
process.once('message', () => {
  runner[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(() => containment[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
await runner.serve({ concurrency: 8 });
process.send?.({ type: 'serving' });

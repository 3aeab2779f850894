// A worker whose agent counts until it is stopped.
import { createRunner } from '@whoa/tasks';
import { openStore } from '../open-store.ts';
import { countingAgent } from './counting-agent.ts';

const runner = createRunner({
  store: openStore(process.argv[2]!),
  agents: { assistant: countingAgent },
});
await runner.serve();

// A worker whose agent counts until it is stopped. Says when it begins, and when and why its token fires.
import { createAgent, sleep } from '@whoa/core';
import { createRunner } from '@whoa/tasks';
import { openStore } from '../open-store.ts';

const agent = createAgent({
  name: 'assistant',
  planner: {
    async next(_history, { token, tell }) {
      token.onCancel((level, reason) => process.send!({ type: 'fired', level, reason }));
      process.send!({ type: 'working' });
      for (let count = 1; ; count++) {
        tell({ type: 'text', text: `${count} ` });
        await sleep(10, { clock: token.clock, token });
      }
    },
  },
});
const runner = createRunner({ store: openStore(process.argv[2]!), agents: { assistant: agent }, flushMs: 20 });
await runner.serve();

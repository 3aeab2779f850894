import { type Agent, createAgent, sleep } from '@whoa/core';

/** An agent that counts until it is stopped. Reports when it starts, and when and why its token fires. */
export const countingAgent: Agent = createAgent({
  name: 'assistant',
  planner: {
    async next(_history, { token, emit }) {
      token.onCancel((level, reason) => process.send!({ type: 'fired', level, reason }));
      process.send!({ type: 'working' });
      for (let count = 1; ; count++) {
        emit({ type: 'text', text: `${count} ` });
        await sleep(10, { clock: token.clock, token });
      }
    },
  },
});

import type { Connection } from '../adapter.ts';
import { expect, type GroupCheck, type Scenario } from '../check.ts';
import { begin, expectCancelled, expectModelStopped, expectReply, settle, stopDuring } from '../drive-turn.ts';
import { promptFor } from '../harness/script.ts';
import { ENDS_AS_CANCELLED, TERMINAL_STAYS } from './rules.ts';

async function cancelFrom(scenario: Scenario, other: Connection): Promise<void> {
  try {
    const started = await begin(scenario, 'stream');
    const id = await started.turn.id!();
    await other.cancelTask!(id);
    expectCancelled(scenario, await settle(scenario, started.turn));
    await expectModelStopped(scenario.harness, started.key, scenario.settleMs);
    if (scenario.connection.status !== undefined) await expectStatus(scenario, id, 'cancelled');
  } finally {
    await other[Symbol.asyncDispose]();
  }
}

/** Waits for the end of a task, and expects this status. */
async function expectStatus({ connection, settleMs }: Scenario, id: string, wanted: string): Promise<void> {
  const until = performance.now() + settleMs;
  let status = await connection.status!(id);
  while (status === 'running' && performance.now() <= until) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    status = await connection.status!(id);
  }
  expect(status === wanted, `its status is '${status}'`);
}

export const REMOTE_CHECKS: readonly GroupCheck[] = [
  {
    id: 'status-cancelled',
    title: 'The status of a cancelled task is cancelled, on any connection',
    rules: ENDS_AS_CANCELLED,
    needs: ['cancel', 'status', 'model'],
    async run(scenario) {
      const { turn } = await stopDuring(scenario, 'stream');
      await expectStatus(scenario, await turn.id!(), 'cancelled');
    },
  },
  {
    id: 'status-stays-completed',
    title: 'A cancel of a completed task leaves it completed',
    rules: TERMINAL_STAYS,
    needs: ['cancel', 'status', 'model'],
    async run(scenario) {
      const turn = scenario.conversation.start(promptFor('reply', scenario.harness.makeKey()));
      const id = await turn.id!();
      await settle(scenario, turn, 4 * scenario.settleMs);
      scenario.note(await scenario.connection.cancelTask!(id));
      await expectStatus(scenario, id, 'completed');
    },
  },
  {
    id: 'status-stays-cancelled',
    title: 'A cancelled task stays cancelled, whatever its tool does later',
    rules: TERMINAL_STAYS,
    needs: ['cancel', 'status', 'model', 'tool'],
    async run(scenario) {
      const { turn, key } = await stopDuring(scenario, 'call');
      scenario.harness.probe.finish(key);
      await expectReply(await scenario.elsewhere());
      await expectStatus(scenario, await turn.id!(), 'cancelled');
    },
  },
  {
    id: 'cancel-by-id',
    title: 'A task can be cancelled from another connection, and really stops',
    rules: ENDS_AS_CANCELLED,
    needs: ['cancel', 'cancel-by-id', 'model'],
    run: async (scenario) => cancelFrom(scenario, await scenario.adapter.connect(scenario.harness)),
  },
  {
    id: 'cancel-at-b',
    title: 'A task that runs at one instance can be cancelled at another, and really stops',
    rules: ENDS_AS_CANCELLED,
    needs: ['cancel', 'cancel-by-id', 'second-instance', 'model'],
    run: async (scenario) => cancelFrom(scenario, await scenario.adapter.connectSecond!(scenario.harness)),
  },
  {
    id: 'cancel-then-crash',
    title: 'A cancel that was acknowledged holds when the server is killed right after, and starts again',
    needs: ['cancel', 'status', 'restart', 'model', 'tool'],
    endsConnection: true,
    async run(scenario) {
      const started = await begin(scenario, 'call-unresponsive');
      const id = await started.turn.id!();
      await scenario.connection.cancelTask!(id);
      await scenario.adapter.restart!(scenario.harness);
      const again = await scenario.adapter.connect(scenario.harness);
      try {
        await expectStatus({ ...scenario, connection: again, settleMs: 4 * scenario.settleMs }, id, 'cancelled');
        const left = await scenario.harness.probe.waitForEnd(started.key, 2_000);
        expect(left.length === 0, 'its tool was still running');
      } finally {
        await again[Symbol.asyncDispose]();
      }
    },
  },
];

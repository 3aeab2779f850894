import { expect, type GroupCheck, needsFor } from '../check.ts';
import { begin, settle, settleOutside } from '../drive-turn.ts';
import type { Action } from '../harness/script.ts';

const ROUNDS = 10;

function latency(action: Action, id: string, title: string): GroupCheck {
  return {
    id: `latency-${id}`,
    title,
    needs: ['cancel', ...needsFor(action)],
    async run(scenario) {
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const fresh = await scenario.elsewhere();
        const started = await begin(fresh, action);
        const from = performance.now();
        await fresh.conversation.cancel();
        await settle(scenario, started.turn);
        await settleOutside(scenario, started);
        times.push(performance.now() - from);
      }
      times.sort((a, b) => a - b);
      const [p50, p95] = [times[Math.floor(ROUNDS * 0.5)]!, times[Math.floor(ROUNDS * 0.95)]!];
      scenario.note(`p50 ${p50.toFixed(0)} ms, p95 ${p95.toFixed(0)} ms`);
      expect(p95 <= 1_000, `p95 was ${p95.toFixed(0)} ms`);
    },
  };
}

export const LATENCY_CHECKS: readonly GroupCheck[] = [
  latency('stream', 'reply', 'A reply is stopped within a second'),
  latency('call', 'call', 'A call is stopped within a second'),
];

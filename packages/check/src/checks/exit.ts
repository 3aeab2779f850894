import type { AgentProcess, Feature } from '../adapter.ts';
import { expect, type GroupCheck } from '../check.ts';
import { within } from '../clock.ts';
import { begin } from '../drive-turn.ts';
import { describeLeft, GONE_MS } from './leftovers.ts';

const WAYS = {
  eof: { when: 'its input ends', end: (agent) => agent.endInput(), needs: ['stdio', 'process'] },
  sigterm: { when: 'it gets SIGTERM', end: (agent) => agent.kill('SIGTERM'), needs: ['process'] },
  sigkill: { when: 'it is killed', end: (agent) => agent.kill('SIGKILL'), needs: ['process'] },
} satisfies Record<string, { when: string; end: (agent: AgentProcess) => void; needs: Feature[] }>;

function exits(way: 'eof' | 'sigterm', isBusy: boolean): GroupCheck {
  const { when, end, needs } = WAYS[way];
  return {
    id: `exit-${way}-${isBusy ? 'busy' : 'idle'}`,
    title: `The agent exits when ${when} ${isBusy ? 'during a turn' : 'while nothing runs'}`,
    needs: isBusy ? [...needs, 'model'] : needs,
    endsConnection: true,
    async run(scenario) {
      if (isBusy) await begin(scenario, 'stream');
      const agent = scenario.connection.process!;
      end(agent);
      const ms = 2 * scenario.settleMs;
      expect(await within(ms, agent.exited), `it was still running ${ms / 1_000} s later`);
    },
  };
}

function orphans(way: keyof typeof WAYS): GroupCheck {
  const { when, end, needs } = WAYS[way];
  return {
    id: `orphans-${way}`,
    title: `No process of a tool is left when ${when}`,
    needs: [...needs, 'model', 'shell'],
    endsConnection: true,
    async run(scenario) {
      const { key } = await begin(scenario, 'call-tree');
      const agent = scenario.connection.process!;
      end(agent);
      await within(2 * scenario.settleMs, agent.exited);
      const left = await scenario.harness.probe.waitForEnd(key, GONE_MS);
      expect(left.length === 0, `${GONE_MS / 1_000} s later ${describeLeft(left)}`);
    },
  };
}

export const EXIT_CHECKS: readonly GroupCheck[] = [
  exits('eof', false),
  exits('eof', true),
  exits('sigterm', false),
  exits('sigterm', true),
  orphans('eof'),
  orphans('sigterm'),
  orphans('sigkill'),
];

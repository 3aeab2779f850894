import { expect, type GroupCheck, type Scenario } from '../check.ts';
import { within } from '../clock.ts';
import { begin } from '../drive-turn.ts';
import { describeLeft, GONE_MS } from './leftovers.ts';

type Way = 'eof' | 'sigterm' | 'sigkill';

const WAYS: Readonly<Record<Way, string>> = {
  eof: 'its input ends',
  sigterm: 'it gets SIGTERM',
  sigkill: 'it is killed',
};

function end({ connection }: Scenario, way: Way): void {
  const agent = connection.process!;
  if (way === 'eof') agent.endInput();
  else agent.kill(way === 'sigterm' ? 'SIGTERM' : 'SIGKILL');
}

function exits(way: 'eof' | 'sigterm', isBusy: boolean): GroupCheck {
  return {
    id: `exit-${way}-${isBusy ? 'busy' : 'idle'}`,
    title: `The agent exits when ${WAYS[way]} ${isBusy ? 'during a turn' : 'while nothing runs'}`,
    needs: [...(way === 'eof' ? (['stdio'] as const) : []), 'process', ...(isBusy ? (['model'] as const) : [])],
    endsConnection: true,
    async run(scenario) {
      if (isBusy) await begin(scenario, 'stream');
      end(scenario, way);
      const ms = 2 * scenario.settleMs;
      expect(await within(ms, scenario.connection.process!.exited), `it was still running ${ms / 1_000} s later`);
    },
  };
}

function orphans(way: Way): GroupCheck {
  return {
    id: `orphans-${way}`,
    title: `No process of a tool is left when ${WAYS[way]}`,
    needs: [...(way === 'eof' ? (['stdio'] as const) : []), 'process', 'model', 'shell'],
    endsConnection: true,
    async run(scenario) {
      const { key } = await begin(scenario, 'call-tree');
      end(scenario, way);
      await within(2 * scenario.settleMs, scenario.connection.process!.exited);
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

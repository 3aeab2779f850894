import { expect, type GroupCheck } from '../check.ts';
import { begin, settle } from '../drive-turn.ts';
import type { Role } from '../probe/probe.ts';
import { STOPS_AT_ONCE } from './rules.ts';

/** How long processes may take to be gone after the end was said. */
export const GONE_MS = 2_000;

const NAMES: Readonly<Record<Role, string>> = {
  root: 'the process of the tool',
  child: 'a child of it',
  detached: 'a child that had left the process group',
};

/** Says which processes are left. */
export function describeLeft(left: readonly Role[]): string {
  return `${left.map((role) => NAMES[role]).join(' and ')} ${left.length === 1 ? 'was' : 'were'} still running`;
}

function leavesNothing(id: Role | 'unresponsive', title: string): GroupCheck {
  const role = id === 'unresponsive' ? 'root' : id;
  return {
    id: `left-${id}`,
    title,
    // No specification asks an agent to follow a process that leaves its group.
    ...(role !== 'detached' && { rules: STOPS_AT_ONCE }),
    needs: ['cancel', 'model', 'shell'],
    async run(scenario) {
      const { turn, key } = await begin(scenario, id === 'unresponsive' ? 'call-unresponsive' : 'call-tree');
      await scenario.conversation.cancel();
      await settle(scenario, turn, 2 * scenario.settleMs);
      const left = await scenario.harness.probe.waitForEnd(key, GONE_MS, role);
      expect(left.length === 0, `${GONE_MS / 1_000} s after the end ${describeLeft(left)}`);
    },
  };
}

export const LEFTOVER_CHECKS: readonly GroupCheck[] = [
  leavesNothing('root', 'The process of a cancelled tool is gone at the end of the turn'),
  leavesNothing('child', 'Its child is gone too'),
  leavesNothing('detached', 'A child that left the process group is gone too'),
  leavesNothing('unresponsive', 'A process that ignores SIGTERM is gone too'),
];

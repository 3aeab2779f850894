import type { Check, GroupCheck } from '../check.ts';
import { APPROVAL_CHECKS } from './approval.ts';
import { END_CHECKS } from './ends.ts';
import { EXIT_CHECKS } from './exit.ts';
import { LATENCY_CHECKS } from './latency.ts';
import { LEFTOVER_CHECKS } from './leftovers.ts';
import { NEXT_TURN_CHECKS } from './next-turn.ts';
import { QUIET_CHECKS } from './quiet.ts';
import { RACE_CHECKS } from './races.ts';
import { REMOTE_CHECKS } from './remote.ts';
import { RESIST_CHECKS } from './resist.ts';

const inGroup = (group: Check['group'], checks: readonly GroupCheck[]): Check[] =>
  checks.map((check) => ({ ...check, group }));

/** All checks, in the order in which they run. */
export const CHECKS: readonly Check[] = [
  ...inGroup('end', END_CHECKS),
  ...inGroup('races', RACE_CHECKS),
  ...inGroup('quiet', QUIET_CHECKS),
  ...inGroup('leftovers', LEFTOVER_CHECKS),
  ...inGroup('next-turn', NEXT_TURN_CHECKS),
  ...inGroup('approval', APPROVAL_CHECKS),
  ...inGroup('remote', REMOTE_CHECKS),
  ...inGroup('latency', LATENCY_CHECKS),
  ...inGroup('resist', RESIST_CHECKS),
  ...inGroup('exit', EXIT_CHECKS),
];

import type { Check, GroupCheck } from '../check.ts';
import { CONSENT_CHECKS } from './consent.ts';
import { DEATH_CHECKS } from './death.ts';
import { ELSEWHERE_CHECKS } from './elsewhere.ts';
import { END_CHECKS } from './ends.ts';
import { LATENCY_CHECKS } from './latency.ts';
import { LEFT_CHECKS } from './left.ts';
import { NEXT_CHECKS } from './next.ts';
import { QUIET_CHECKS } from './quiet.ts';
import { RACE_CHECKS } from './races.ts';

const inGroup = (group: Check['group'], checks: readonly GroupCheck[]): Check[] =>
  checks.map((check) => ({ ...check, group }));

/** All checks, in the order in which they run. */
export const CHECKS: readonly Check[] = [
  ...inGroup('end', END_CHECKS),
  ...inGroup('races', RACE_CHECKS),
  ...inGroup('quiet', QUIET_CHECKS),
  ...inGroup('left', LEFT_CHECKS),
  ...inGroup('next', NEXT_CHECKS),
  ...inGroup('consent', CONSENT_CHECKS),
  ...inGroup('elsewhere', ELSEWHERE_CHECKS),
  ...inGroup('latency', LATENCY_CHECKS),
  ...inGroup('death', DEATH_CHECKS),
];

import type { Check } from '../check.ts';
import { CONSENT_CHECKS } from './consent.ts';
import { DEATH_CHECKS } from './death.ts';
import { ELSEWHERE_CHECKS } from './elsewhere.ts';
import { END_CHECKS } from './ends.ts';
import { LATENCY_CHECKS } from './latency.ts';
import { LEFT_CHECKS } from './left.ts';
import { NEXT_CHECKS } from './next.ts';
import { QUIET_CHECKS } from './quiet.ts';
import { RACE_CHECKS } from './races.ts';

/** All checks, in the order in which they run. */
export const CHECKS: readonly Check[] = [
  ...END_CHECKS,
  ...RACE_CHECKS,
  ...QUIET_CHECKS,
  ...LEFT_CHECKS,
  ...NEXT_CHECKS,
  ...CONSENT_CHECKS,
  ...ELSEWHERE_CHECKS,
  ...LATENCY_CHECKS,
  ...DEATH_CHECKS,
];

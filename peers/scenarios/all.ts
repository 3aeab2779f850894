import type { Scenario } from '../core/scenario.ts';
import { consent } from './consent.ts';
import { elsewhere } from './elsewhere.ts';
import { history } from './history.ts';
import { keep } from './keep.ts';
import { left } from './left.ts';
import { newer } from './newer.ts';
import { other } from './other.ts';
import { target } from './target.ts';
import { time } from './time.ts';

/** Every scenario, in the order of the table. */
export const scenarios: readonly Scenario[] = [
  ...time,
  ...keep,
  ...history,
  ...left,
  ...target,
  ...elsewhere,
  ...consent,
  ...newer,
  ...other,
];

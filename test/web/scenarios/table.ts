// Every scenario of a chat. Each has a separate chat.
import type { Scenario } from './acts.ts';
import { ASKING } from './asking.ts';
import { CHANGING } from './changing.ts';
import { LOST } from './lost.ts';
import { READING } from './reading.ts';
import { SENDING } from './sending.ts';
import { STOPPING } from './stopping.ts';
import { WATCHING } from './watching.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...STOPPING,
  ...SENDING,
  ...READING,
  ...ASKING,
  ...CHANGING,
  ...LOST,
  ...WATCHING,
];

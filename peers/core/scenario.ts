import type { Lab } from './lab.ts';
import type { Peer } from './peer.ts';

export const GROUPS = {
  time: 'Stop in time',
  keep: 'Keep what was done',
  history: 'Leave a valid history',
  left: 'Leave nothing behind',
  target: 'Stop the right thing',
  elsewhere: 'Stop from elsewhere',
  consent: 'Respect a pending question',
  newer: 'Take a newer message',
  other: 'Other strengths',
} as const;

export type Result = 'yes' | 'partly' | 'no' | 'not offered' | 'not run';

export interface Verdict {
  readonly result: Result;
  /** One sentence: what was observed. */
  readonly seen: string;
}

export interface Scenario {
  readonly id: string;
  readonly group: keyof typeof GROUPS;
  /** What a user may expect, in one sentence. */
  readonly expects: string;
  /** What decides between yes and no. */
  readonly rule: string;
  play(lab: Lab): Promise<Verdict>;
}

export const yes = (seen: string): Verdict => ({ result: 'yes', seen });
export const partly = (seen: string): Verdict => ({ result: 'partly', seen });
export const no = (seen: string): Verdict => ({ result: 'no', seen });
export const notOffered = (seen: string): Verdict => ({ result: 'not offered', seen });

/** What an adapter says about a feature that it lacks. */
export function missing(peer: Peer, feature: string, otherwise: string): Verdict {
  const why = peer.notRun?.[feature];
  return why === undefined ? notOffered(peer.notOffered[feature] ?? otherwise) : { result: 'not run', seen: why };
}

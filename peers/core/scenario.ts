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
  /** The observation, in one sentence. */
  readonly seen: string;
}

export interface Scenario {
  readonly id: string;
  readonly group: keyof typeof GROUPS;
  /** The user's expectation, in one sentence. */
  readonly expects: string;
  /** The criterion for yes or no. */
  readonly rule: string;
  run(lab: Lab): Promise<Verdict>;
}

export const yes = (seen: string): Verdict => ({ result: 'yes', seen });
export const partly = (seen: string): Verdict => ({ result: 'partly', seen });
export const no = (seen: string): Verdict => ({ result: 'no', seen });
export const notOffered = (seen: string): Verdict => ({ result: 'not offered', seen });

/** The verdict for a feature that an adapter lacks. */
export function missing(peer: Peer, feature: string, otherwise: string): Verdict {
  const why = peer.notRun?.[feature];
  return why === undefined ? notOffered(peer.notOffered[feature] ?? otherwise) : { result: 'not run', seen: why };
}

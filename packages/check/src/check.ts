import type { Adapter, Connection, Conversation, Feature, Features, Protocol } from './adapter.ts';
import type { CheckHarness } from './harness/check-harness.ts';
import type { Action } from './harness/script.ts';

/** Groups of checks, in the order in which they run. */
export const GROUPS = {
  end: 'A cancelled turn ends, and reports it',
  races: 'Cancels at odd moments',
  quiet: 'Nothing continues after the end',
  leftovers: 'No process is left behind',
  'next-turn': 'The next turn works, and knows what happened',
  approval: 'Approvals',
  resist: 'A command that resists is stopped too',
  exit: 'The agent exits',
  remote: 'Cancels from elsewhere',
  latency: 'Latency',
} as const;

/** The rule that a check stands on: of a specification, or `ours`. */
export interface Rule {
  readonly from: string;
  readonly level: 'MUST' | 'SHOULD' | 'ours';
  readonly text: string;
}

/** What a check works with. */
export interface Scenario {
  readonly adapter: Adapter;
  /** What the protocol and this agent offer. */
  readonly features: Features;
  readonly harness: CheckHarness;
  readonly connection: Connection;
  readonly conversation: Conversation;
  /** How long a cancel may take. */
  readonly settleMs: number;
  /** The same in a new conversation. */
  elsewhere(): Promise<Scenario>;
  /** Adds an observation to the result. */
  note(text: string): void;
}

/** One check. */
export interface Check {
  readonly id: string;
  readonly group: keyof typeof GROUPS;
  /** What is expected, as a sentence. */
  readonly title: string;
  readonly rules?: Readonly<Partial<Record<Protocol, Rule>>>;
  readonly needs: readonly Feature[];
  /** Only for these protocols. */
  readonly only?: readonly Protocol[];
  /** Whether the connection cannot be used any more after it. */
  readonly endsConnection?: true;
  /** Throws a `Violation` when the agent breaks the rule. */
  readonly run: (scenario: Scenario) => Promise<void>;
}

/** A check as its group lists it. */
export type GroupCheck = Omit<Check, 'group'>;

/** What an agent needs for an action. */
export function needsFor(action: Action): readonly Feature[] {
  return action.includes('call') ? ['model', 'tool'] : ['model'];
}

/** Thrown by a check: what was observed instead of what is expected. */
export class Violation extends Error {}

/** Thrown by a check: the agent does not offer something that its protocol leaves optional. */
export class NotOffered extends Error {}

/** Throws what was observed, unless it is as expected. */
export function expect(isTrue: boolean, observed: string): asserts isTrue {
  if (!isTrue) throw new Violation(observed);
}

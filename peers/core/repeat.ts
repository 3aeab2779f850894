import { Lab, NotReached, NotSettled } from './lab.ts';
import type { Peer } from './peer.ts';
import type { Result, Scenario, Verdict } from './scenario.ts';

export interface Observation {
  /** `sometimes` if repetitions differ. */
  readonly result: Result | 'sometimes';
  readonly seen: string;
}

export interface Repetition {
  readonly peer: Peer;
  /** The file of its adapter. */
  readonly module: string;
  readonly times: number;
}

/** Runs a scenario several times with one library, each time from scratch. */
export async function repeat(scenario: Scenario, { peer, module, times }: Repetition): Promise<Observation> {
  const verdicts: Verdict[] = [];
  for (let time = 0; time < times; time++) {
    verdicts.push(await runUntilReached(scenario, { peer, module }));
    if (verdicts[0]?.result === 'not offered' || verdicts[0]?.result === 'not run') break;
  }
  return summarise(verdicts);
}

/** One verdict if they agree, or how often there was which. */
export function summarise(verdicts: readonly Verdict[]): Observation {
  const counts = new Map<Result, number>();
  for (const { result } of verdicts) counts.set(result, (counts.get(result) ?? 0) + 1);
  const first = verdicts[0]!;
  if (counts.size === 1) return first;
  const shares = [...counts].map(([result, count]) => `${count} of ${verdicts.length} ${result}`).join(', ');
  const worst = verdicts.find(({ result }) => result === 'no') ?? first;
  return { result: 'sometimes', seen: `${shares}; ${worst.seen}` };
}

/** On a busy machine a run may not reach its cancel in time. That says nothing about the cancel. */
const ATTEMPTS = 3;

async function runUntilReached(scenario: Scenario, { peer, module }: Omit<Repetition, 'times'>): Promise<Verdict> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(scenario, new Lab(peer, module));
    } catch (error) {
      if (attempt === ATTEMPTS) return { result: 'no', seen: `it failed: ${(error as Error).message}` };
    }
  }
}

async function runOnce(scenario: Scenario, lab: Lab): Promise<Verdict> {
  try {
    return await scenario.run(lab);
  } catch (error) {
    if (error instanceof NotReached) throw error;
    // A run that never ends answers every question about its result.
    const { message } = error as Error;
    return { result: 'no', seen: error instanceof NotSettled ? message : `it failed: ${message}` };
  } finally {
    await lab[Symbol.asyncDispose]();
  }
}

// Writes a large file again and again and cancels at random moments: each time the file is the old or the new one, whole.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { type CallResult, CancellationToken, createRuntime, isCancelledError, type Tool } from '@whoa/core';
import { createRoot } from '@whoa/tools';
import { createWriteTool } from '@whoa/tools/internal';

export interface WriteCampaign {
  readonly folder: string;
  readonly rounds: number;
  readonly bytes: number;
  /** In [0, 1). */
  readonly random: () => number;
}

export interface WriteCampaignResult {
  readonly rounds: number;
  readonly old: number;
  readonly new: number;
  readonly faults: readonly string[];
  /** From the cancel to the result. */
  readonly stopMsMedian: number;
  readonly maxStopMs: number;
}

export async function cancelWrites({ folder, rounds, bytes, random }: WriteCampaign): Promise<WriteCampaignResult> {
  const root = createRoot(folder);
  const runtime = createRuntime({ tools: [createWriteTool({ root }) as Tool] });
  const createContent = (round: number): string => String.fromCharCode(65 + (round % 26)).repeat(bytes);
  const write = async (round: number, token: CancellationToken): Promise<CallResult> => {
    const call = { id: `${round}`, tool: 'write', input: { path: 'big.txt', content: createContent(round) } };
    try {
      return (await runtime.execute([call], { token }))[0]!;
    } catch (error) {
      if (!isCancelledError(error)) throw error;
      return (error.partial as CallResult[])[0]!;
    }
  };
  const first = performance.now();
  using undisturbed = new CancellationToken();
  await write(0, undisturbed);
  let longestMs = performance.now() - first;
  const faults: string[] = [];
  const stops: number[] = [];
  let current = 0;
  let renewed = 0;
  for (let round = 1; round <= rounds; round++) {
    using token = new CancellationToken();
    const started = performance.now();
    const writing = write(round, token);
    // A little past the end too, so that some are cancelled just after their commit.
    await sleep(random() * 1.4 * longestMs);
    const cancelled = performance.now();
    token.cancel({ kind: 'user' }, { mode: round % 5 === 0 ? 'kill' : 'now' });
    const { state } = await writing;
    stops.push(performance.now() - cancelled);
    if (state === 'finished') {
      current = round;
      renewed++;
      // Reality moves: keep aiming at the whole length of a write.
      longestMs = (longestMs + performance.now() - started) / 2;
    } else if (state !== 'interrupted' && state !== 'not-started') faults.push(`round ${round} ended '${state}'`);
    faults.push(...inspect(folder, { round, expected: createContent(current) }));
  }
  stops.sort((a, b) => a - b);
  return {
    rounds,
    old: rounds - renewed,
    new: renewed,
    faults,
    stopMsMedian: stops[Math.floor(stops.length / 2)] ?? 0,
    maxStopMs: stops.at(-1) ?? 0,
  };
}

function inspect(folder: string, { round, expected }: { round: number; expected: string }): string[] {
  const names = readdirSync(folder);
  const faults = names.filter((name) => name !== 'big.txt').map((name) => `round ${round} left ${name}`);
  if (readFileSync(`${folder}/big.txt`, 'latin1') !== expected) faults.push(`round ${round}: not the expected content`);
  return faults;
}

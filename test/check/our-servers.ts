// Our own servers as users start them, and the kit's results for them.
import { type Adapter, type AgentCommand, type CheckReport, createCheckHarness, runChecks } from '@whoa/check';
import { BIN } from '../command/terminal.ts';

/** The machine of a test may be busy. */
const BUSY_MS = 10_000;
const TOKEN = 'a-token-of-twenty-characters-or-more';
const PERMISSIVE = ['--sandbox', 'none', '--yes'];
const HOME = { HOME: '{folder}', XDG_STATE_HOME: '{folder}/state', XDG_CONFIG_HOME: '{folder}/config' };

const HEADERS: Readonly<Record<string, string>> = { authorization: `Bearer ${TOKEN}` };

/** `whoa serve` with a worker in the same process, on a SQLite store in the folder. Several of them share it. */
const WHOA_SERVE: AgentCommand = {
  command: [...BIN, 'serve', '--work', '--port', '{port}', ...PERMISSIVE],
  env: { ...HOME, WHOA_TOKEN: TOKEN },
};

/** Two instances of `whoa serve` on one store. */
export const TWO_INSTANCES = { command: WHOA_SERVE, secondCommand: WHOA_SERVE, headers: HEADERS } as const;

/** `whoa mcp`; without `--yes`, commands need approval. */
export function whoaMcp({ asks = false } = {}): AgentCommand {
  return { command: [...BIN, 'mcp', ...(asks ? PERMISSIVE.slice(0, 2) : PERMISSIVE)], env: HOME };
}

/** Runs checks, or groups of them, and ends every process that was started. */
export async function check(given: Adapter, only?: readonly string[], settleMs = BUSY_MS): Promise<CheckReport> {
  await using harness = await createCheckHarness();
  await using adapter = given;
  return await runChecks({ adapter, harness, settleMs, ...(only !== undefined && { only }) });
}

/** Lists every result of a report that is neither a pass nor a check that does not apply, as sentences. */
export function findProblems({ results }: CheckReport): readonly string[] {
  return results
    .filter(({ status }) => status === 'failed' || status === 'unclear')
    .map(({ id, status, detail }) => `${id} ${status}: ${detail}`);
}

/** The checks that were failed. */
export function findFailed({ results }: CheckReport): readonly string[] {
  return results.filter(({ status }) => status === 'failed').map(({ id }) => id);
}

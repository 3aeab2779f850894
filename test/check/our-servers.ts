// Our own servers as users start them, and the kit's results for them.
import { type Adapter, type AgentCommand, CHECKS, type CheckReport, createCheckHarness, runChecks } from '@whoa/check';
import { BIN } from '../command/terminal.ts';
import { forChange } from '../night.ts';

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

/** The checks of a change: those that broken agents fail most, and some of every group. */
const CHOSEN: ReadonlySet<string> = new Set(
  `cancel-streaming cancel-in-call one-end unresponsive-tool cancel-request close-cancels
  same-chunk-prompt-first double-cancel prompt-while-stopping model-stopped no-second-call quiet-after-end
  calls-closed late-effect left-detached next-valid-two-calls next-keeps-finished question-unanswered
  question-late-yes cancel-at-b cancel-then-crash exit-eof-busy exit-sigterm-busy orphans-sigkill`.split(/\s+/),
);

/** The checks, or groups of them: all at night, and of each group those of a change otherwise. */
export function checksOf(groups: readonly string[]): readonly string[] {
  const all = CHECKS.filter(({ id, group }) => groups.includes(id) || groups.includes(group)).map(({ id }) => id);
  return forChange(all, (id) => CHOSEN.has(id));
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

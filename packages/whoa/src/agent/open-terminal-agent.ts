import type { Agent, CancellationToken } from '@whoa/core';
import type { Ask } from '@whoa/core/approval';
import { waitUntilLevel } from '@whoa/core/embed';
import type { TaskApprovals } from '@whoa/tasks';
import type { SandboxOptions } from '@whoa/tools';
import { protectedPaths } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import { createRunApprovals } from '../approvals/run-approvals.ts';
import { type Own, UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { Screen } from '../terminal/screen.ts';
import type { PromptBudgets } from './agent-options.ts';
import { chooseSandbox, type SandboxWishes } from './choose-sandbox.ts';
import { openAgent } from './open-agent.ts';
import { askForConsent } from './sandbox-consent.ts';

export interface TerminalAgentOptions {
  readonly values: {
    readonly agent?: string | undefined;
    readonly model?: string | undefined;
    readonly sandbox?: string | undefined;
    readonly yes: boolean;
    readonly json: boolean;
  };
  readonly config: WhoaConfig;
  readonly budgets: PromptBudgets;
  readonly screen: Screen;
  readonly ask: Ask;
  /** How long an `always` is valid, as text. */
  readonly until: string;
  readonly token: CancellationToken;
  readonly own: Own;
}

export interface TerminalAgent {
  readonly agent: Agent;
  readonly approvals: TaskApprovals;
}

/** Opens an agent in this folder for the user at this terminal. Returns `undefined` if it was cancelled first. */
export async function openTerminalAgent(options: TerminalAgentOptions): Promise<TerminalAgent | undefined> {
  const { values, config, budgets, screen, token } = options;
  const cwd = process.cwd();
  const approvals = createRunApprovals({
    ask: options.ask,
    until: options.until,
    judge: createJudge({ rules: config.approvals ?? [], yes: values.yes, cwd, protectedPaths: protectedPaths() }),
    onRemoteAnswer: ({ decision }) => screen.note(`  answered from elsewhere: ${decision}`),
  });
  const wishes = { word: values.sandbox, config, yes: values.yes };
  const sandbox = await settleSandbox(wishes, { screen, asJson: values.json, token });
  if (!values.json) screen.status(() => 'opening the agent');
  const { approve } = approvals;
  const opening = openAgent({ config, name: values.agent, model: values.model, cwd, sandbox, approve, budgets });
  const opened = await waitUntilLevel(opening, token, 'drain');
  if (opened.by === 'error') throw opened.error;
  // Resources that are half open end with the process.
  if (opened.by === 'level') return undefined;
  return { agent: options.own(opened.value).agent, approvals };
}

/** Prints what commands may access. Asks for consent if `--yes` would run without a sandbox that was not chosen explicitly. */
async function settleSandbox(
  wishes: Pick<SandboxWishes, 'word' | 'config' | 'yes'>,
  { screen, asJson, token }: { screen: Screen; asJson: boolean; token: CancellationToken },
): Promise<SandboxOptions> {
  const isTerminal = process.stdin.isTTY === true;
  const { options, shown, needsConsent } = await chooseSandbox({ ...wishes, isTerminal, cwd: process.cwd() });
  if (asJson) screen.data({ type: 'sandbox', sandbox: options.kind });
  else screen.note(screen.style('dim', shown));
  if (needsConsent && !(await askForConsent(screen, token.signal))) {
    throw new UsageError("not allowed without a sandbox; remove --yes, or add '--sandbox none'");
  }
  return options;
}

import type { Agent, CancellationToken } from '@whoa/core';
import type { Ask } from '@whoa/core/approval';
import { waitUntilLevel } from '@whoa/core/embed';
import type { TaskApprovals } from '@whoa/tasks';
import { findOwnFolders } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import { createRunApprovals } from '../approvals/run-approvals.ts';
import { UsageError, type Use, type Values } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { System } from '../system.ts';
import type { Screen } from '../terminal/screen.ts';
import type { AGENT_OPTIONS, OPEN_OPTIONS, PromptBudgets } from './agent-options.ts';
import { type ChosenSandbox, chooseSandbox, type SandboxRequest } from './choose-sandbox.ts';
import { type OpenAgent, openAgent } from './open-agent.ts';
import { RUN_LATER } from './run-later-report.ts';
import { askForConsent } from './sandbox-consent.ts';

export interface TerminalAgentOptions {
  readonly values: Values<typeof OPEN_OPTIONS & typeof AGENT_OPTIONS>;
  readonly config: WhoaConfig;
  readonly budgets: PromptBudgets;
  readonly screen: Screen;
  readonly ask: Ask;
  /** How long an `always` is valid, as text. */
  readonly until: string;
  readonly token: CancellationToken;
  readonly own: Use;
  readonly system: System;
}

export interface TerminalAgent {
  readonly agent: Agent;
  readonly approvals: TaskApprovals;
  readonly hooks: OpenAgent['hooks'];
}

/** Opens an agent in this folder for the user at this terminal. Returns `undefined` if it was cancelled first. */
export async function openTerminalAgent(options: TerminalAgentOptions): Promise<TerminalAgent | undefined> {
  const { values, config, budgets, screen, token, system } = options;
  const { yes } = values;
  const cwd = system.cwd();
  const approvals = createRunApprovals({
    ask: options.ask,
    until: options.until,
    decide: createJudge({ rules: config.approvals, yes, cwd, ownFolders: findOwnFolders(system.env) }),
    onRemoteAnswer: ({ decision }) => screen.note(`  answered from elsewhere: ${decision}`),
  });
  const request = { word: values.sandbox, config, yes };
  const { options: sandbox, shown, needsConsent } = await settleSandbox(request, { screen, token, system });
  if (!values.json) screen.status(() => 'opening the agent');
  const { approve } = approvals;
  const opening = openAgent({
    config,
    name: values.agent,
    model: values.model,
    cwd,
    surroundings: system,
    sandbox,
    isolate: values.isolate,
    approve,
    budgets,
    onRunLater(lines) {
      screen.data({ type: 'run-later', lines });
      if (!values.json) screen.note([RUN_LATER, ...lines].join('\n  '));
    },
  });
  const opened = await waitUntilLevel(opening, token, 'drain');
  if (opened.by === 'error') throw opened.error;
  // Resources that are half open end with the process.
  if (opened.by === 'level') return undefined;
  const { technique } = opened.value;
  screen.data({ type: 'sandbox', sandbox: sandbox.kind, technique });
  if (!values.json && !needsConsent) screen.note(screen.style('dim', `${shown}; processes: ${technique}`));
  const { agent, hooks } = options.own(opened.value);
  return { agent, approvals, hooks };
}

/** Asks for consent if `--yes` would run without a sandbox that was not chosen explicitly. */
async function settleSandbox(
  request: Pick<SandboxRequest, 'word' | 'config' | 'yes'>,
  { screen, token, system }: { screen: Screen; token: CancellationToken; system: System },
): Promise<ChosenSandbox> {
  const isTerminal = system.stdin.isTTY === true;
  const { env } = system;
  const chosen = await chooseSandbox({ ...request, isTerminal, cwd: system.cwd(), env });
  if (chosen.needsConsent) screen.note(screen.style('dim', chosen.shown));
  if (chosen.needsConsent && !(await askForConsent(screen, token.signal, system))) {
    throw new UsageError("not allowed without a sandbox; remove --yes, or add '--sandbox none'");
  }
  return chosen;
}

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { RunOptions } from '@whoa/core';
import { readCount, readDuration, UsageError, type Values } from '../command.ts';
import type { System } from '../system.ts';

/** The options of commands that open agents. */
export const OPEN_OPTIONS = {
  model: { type: 'string' },
  config: { type: 'string' },
  sandbox: { type: 'string', values: ['workspace', 'read-only', 'none'] },
  yes: { type: 'boolean', default: false },
} as const;

/** The options of commands that run an agent in this terminal. */
export const AGENT_OPTIONS = {
  agent: { type: 'string' },
  continue: { type: 'boolean', default: false },
  cwd: { type: 'string' },
  isolate: { type: 'boolean', default: false },
  timeout: { type: 'string' },
  'max-turns': { type: 'string' },
  'max-calls': { type: 'string' },
  'max-tokens': { type: 'string' },
  output: { type: 'string', values: ['short', 'full'] },
} as const;

export const AGENT_HELP = `  --model NAME    anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE
  --agent NAME    an agent of the configuration
  --config FILE   the configuration file; defaults to whoa.config.ts in your configuration folder
  --cwd FOLDER    work in this folder; other paths on the command line are relative to it
  --sandbox KIND  what commands may access. workspace: write to this folder only, no network, none of your keys;
                  read-only: write nowhere; none: everything that you can access. Defaults to workspace where
                  bubblewrap works, otherwise none. MCP servers run outside the sandbox
  --isolate       run each command in a PID namespace, which no process can escape; commands see other pids, and
                  sudo may not work inside. Not started where that does not work
  --yes           ask only about protected paths and calls that a rule in the configuration covers; without a
                  terminal it needs --sandbox
  --timeout TIME  stop a prompt that takes longer, such as 90s, 5m or 1h
  --max-turns N, --max-calls N, --max-tokens N
                  stop a prompt that needs more replies, calls or model tokens
  --output KIND   short: the last lines of what calls print and change, the default; full: everything`;

const MAX_BUDGET = 1_000_000_000;

/** The options of `whoa acp`. All but the first two are for a proxy. */
export const ACP_OPTIONS = {
  agent: { type: 'string' },
  isolate: { type: 'boolean', default: false },
  wait: { type: 'string' },
  log: { type: 'string' },
  folder: { type: 'string', multiple: true },
  readable: { type: 'string', multiple: true },
  key: { type: 'string', multiple: true },
  host: { type: 'string', multiple: true },
} as const;
export type AcpValues = Values<typeof OPEN_OPTIONS & typeof ACP_OPTIONS>;

/** The limits of one prompt. */
export type PromptBudgets = NonNullable<RunOptions['budgets']>;

/** Reads the limits from the command line. */
export function readBudgets(words: Values<typeof AGENT_OPTIONS>): PromptBudgets {
  const read = (option: 'max-turns' | 'max-calls' | 'max-tokens'): number | undefined => {
    const text = words[option];
    return text === undefined ? undefined : readCount(`--${option}`, text, { max: MAX_BUDGET });
  };
  const [maxTurns, maxCalls, maxModelTokens] = [read('max-turns'), read('max-calls'), read('max-tokens')];
  return {
    ...(words.timeout !== undefined && { maxDurationMs: readDuration('--timeout', words.timeout) }),
    ...(maxTurns !== undefined && { maxTurns }),
    ...(maxCalls !== undefined && { maxCalls }),
    ...(maxModelTokens !== undefined && { maxModelTokens }),
  };
}

/** Works in another folder, as if the command had been started there. */
export function enterFolder(folder: string | undefined, system: Pick<System, 'cwd' | 'chdir'>): void {
  if (folder === undefined) return;
  const path = resolve(system.cwd(), folder);
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
  if (!isFolder) throw new UsageError(`--cwd: there is no folder '${folder}'`);
  system.chdir(path);
}

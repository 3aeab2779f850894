import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { detectSandbox, type NetworkRequest, type SandboxKind, type SandboxOptions } from '@whoa/tools';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';

export interface SandboxRequest {
  /** The value of `--sandbox`. */
  readonly word: SandboxKind | undefined;
  readonly config: Pick<WhoaConfig, 'sandbox'>;
  /** Whether calls are allowed without asking. */
  readonly yes: boolean;
  /** Whether a user can be asked. */
  readonly isTerminal: boolean;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** The sandbox that commands will run in. */
export interface ChosenSandbox {
  readonly options: SandboxOptions;
  /** What it means, in one line for the user. */
  readonly shown: string;
  /** The user has not agreed yet that all calls run without a sandbox. */
  readonly needsConsent: boolean;
}

const INSTALL =
  "install bubblewrap 0.8 or later (apt install bubblewrap) and allow user namespaces, or choose '--sandbox none'";

const MEANING: Readonly<Record<SandboxKind, string>> = {
  workspace: 'commands write to this folder only, do not see your keys, and have no network',
  'read-only': 'commands write nowhere, do not see your keys, and have no network',
  none: 'commands can access everything that you can',
};

/** Chooses the sandbox of `--sandbox`, then of the configuration, then the best one that works on this machine. */
export async function chooseSandbox(request: SandboxRequest): Promise<ChosenSandbox> {
  const { word, config, yes, isTerminal, cwd, env } = request;
  const given = typeof config.sandbox === 'string' ? { kind: config.sandbox } : withLog(config.sandbox, env);
  const kind = word ?? given?.kind;
  if (kind === undefined && yes && !isTerminal)
    throw new UsageError('--yes without a terminal needs a sandbox choice: add --sandbox workspace, read-only or none');
  const options: SandboxOptions = { ...given, kind: kind ?? 'workspace', workspace: cwd };
  const { isAvailable, reason } = await detectSandbox(options);
  if (isAvailable) return { options, shown: describe(options), needsConsent: false };
  if (kind !== undefined) {
    const advice = reason?.startsWith('sandbox.') ? '' : `; ${INSTALL}`;
    throw new UsageError(`--sandbox ${kind} does not work here: ${reason}${advice}`, 'SANDBOX');
  }
  const none: SandboxOptions = { kind: 'none' };
  return { options: none, shown: `${describe(none)} (no other works here: ${reason})`, needsConsent: yes };
}

/** Logs the network requests of commands to a file next to the tasks, unless the configuration handles them. */
function withLog(sandbox: (WhoaConfig['sandbox'] & object) | undefined, env: NodeJS.ProcessEnv): typeof sandbox {
  if (sandbox?.network === undefined || sandbox.network.onRequest !== undefined) return sandbox;
  const file = join(dirname(getDefaultSqlitePath(env)), 'network.log');
  const onRequest = (request: NetworkRequest): void => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    appendFileSync(file, `${JSON.stringify(request)}\n`, { mode: 0o600 });
  };
  return { ...sandbox, network: { ...sandbox.network, onRequest } };
}

function describe({ kind, network }: SandboxOptions): string {
  const meaning = MEANING[kind];
  const hosts = network?.allow.join(', ');
  return `sandbox ${kind}: ${hosts && kind !== 'none' ? meaning.replace('have no network', `reach only ${hosts}`) : meaning}`;
}

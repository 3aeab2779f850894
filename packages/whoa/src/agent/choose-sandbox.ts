import { appendFileSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { getDefaultSqlitePath } from '@whoa/tasks/internal';
import { detectSandbox, type NetworkRequest, SANDBOX_KINDS, type SandboxKind, type SandboxOptions } from '@whoa/tools';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';

export interface SandboxWishes {
  /** What `--sandbox` says. */
  readonly word: string | undefined;
  readonly config: Pick<WhoaConfig, 'sandbox'>;
  /** Every call is allowed without a question. */
  readonly yes: boolean;
  /** Whether somebody can be asked. */
  readonly isTerminal: boolean;
  readonly cwd: string;
}

/** The sandbox that commands will run in. */
export interface ChosenSandbox {
  readonly options: SandboxOptions;
  /** What it means, in one line for people. */
  readonly shown: string;
  /** Nobody said that everything may run without one. */
  readonly needsConsent: boolean;
}

const INSTALL =
  "install bubblewrap 0.8 or later (apt install bubblewrap) and allow user namespaces, or say '--sandbox none' knowingly";

const MEANING: Readonly<Record<SandboxKind, string>> = {
  workspace: 'commands write to this folder only, see no keys of yours, and have no network',
  'read-only': 'commands write nowhere, see no keys of yours, and have no network',
  none: 'commands can read and change everything that you can',
};

/** The words on the command line count first, then the configuration, then what this machine can do. */
export async function chooseSandbox({ word, config, yes, isTerminal, cwd }: SandboxWishes): Promise<ChosenSandbox> {
  const given = typeof config.sandbox === 'string' ? { kind: config.sandbox } : withLog(config.sandbox);
  const kind = word === undefined ? given?.kind : readWord(word);
  if (kind === undefined) {
    if (yes && !isTerminal) {
      throw new UsageError(
        '--yes without a terminal needs to know what commands may reach: add --sandbox workspace, read-only or none',
      );
    }
    return chooseByDefault({ ...given, kind: 'workspace', workspace: cwd }, yes);
  }
  const options = { ...given, kind, workspace: cwd };
  const { isAvailable, reason } = await detectSandbox(options);
  if (!isAvailable) throw new UsageError(`--sandbox ${kind} does not work here: ${reason}; ${INSTALL}`, 'SANDBOX');
  return { options, shown: describe(options), needsConsent: false };
}

async function chooseByDefault(options: SandboxOptions, yes: boolean): Promise<ChosenSandbox> {
  const { isAvailable, reason } = await detectSandbox(options);
  if (isAvailable) return { options, shown: describe(options), needsConsent: false };
  const none: SandboxOptions = { kind: 'none' };
  return { options: none, shown: `${describe(none)} (no other works here: ${reason})`, needsConsent: yes };
}

/** What commands asked of the network is kept beside the tasks, unless the configuration does something else with it. */
function withLog(sandbox: (WhoaConfig['sandbox'] & object) | undefined): typeof sandbox {
  if (sandbox?.network === undefined || sandbox.network.onRequest !== undefined) return sandbox;
  const file = join(dirname(getDefaultSqlitePath()), 'network.log');
  const onRequest = (request: NetworkRequest): void => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    appendFileSync(file, `${JSON.stringify(request)}\n`, { mode: 0o600 });
  };
  return { ...sandbox, network: { ...sandbox.network, onRequest } };
}

function readWord(word: string): SandboxKind {
  const kind = SANDBOX_KINDS.find((one) => one === word);
  if (kind === undefined) throw new UsageError(`--sandbox: write ${SANDBOX_KINDS.join(', ')}, not '${word}'`);
  return kind;
}

function describe({ kind, network }: SandboxOptions): string {
  const meaning = MEANING[kind];
  const hosts = network?.allow.join(', ');
  return `sandbox ${kind}: ${hosts && kind !== 'none' ? meaning.replace('have no network', `reach only ${hosts}`) : meaning}`;
}

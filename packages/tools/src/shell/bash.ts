import { createInterruptedError, defineTool, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import type { Containment } from '../process/containment/containment.ts';
import { createContainment } from '../process/containment/create-containment.ts';
import { findGit } from '../sandbox/git-call.ts';
import type { SandboxKind } from '../sandbox/options.ts';
import { strictInput } from '../strict-input.ts';
import type { BackgroundProcesses } from './background.ts';
import { createShellEnvironment, type EnvironmentOptions } from './environment.ts';
import { partialResult, progressResult, shellResult } from './result.ts';
import { runShell } from './run-shell.ts';

export interface BashToolOptions {
  readonly cwd?: string | undefined;
  /** Which variables of the host's environment commands get. Defaults to a list of harmless names. */
  readonly env?: EnvironmentOptions | undefined;
  /** The time limit of a command. Defaults to 2 minutes. A model may ask for less, or for up to 10 minutes. */
  readonly timeoutMs?: number | undefined;
  /** Keep output that is too long in a file. It is removed with the containment, unless you name a folder of yours. */
  readonly keepLog?: boolean | { readonly folder: string } | undefined;
  /** Lets a model start processes that outlive the call. This owns them. */
  readonly background?: BackgroundProcesses | undefined;
  /** Share one between the tools of a host, so that there is one watchdog. Defaults to its own. */
  readonly containment?: Containment | undefined;
}

export interface BashInput {
  readonly command: string;
  readonly timeoutSeconds?: number | undefined;
  readonly background?: boolean | undefined;
}

const TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;

/**
 * Creates a shell for a model. All processes that a command starts, even daemons, end with it or with its cancel.
 *
 * @returns The tool `bash`.
 * @throws RangeError when an option is out of range.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { createBashTool } from '@whoa/tools';
 *
 * const coder = createAgent({ name: 'coder', model, tools: [createBashTool({ cwd: '/srv/project' })] });
 * ```
 */
export function createBashTool(options: BashToolOptions = {}): Tool<BashInput> {
  const { timeoutMs = TIMEOUT_MS, background, containment = createContainment() } = options;
  const { keepLog = false, cwd } = options;
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new RangeError(`timeoutMs: expected more than 0 and at most ${MAX_TIMEOUT_MS} ms, got ${timeoutMs}`);
  }

  const { sandbox, hosts } = containment;
  const confined = hosts.length === 0 ? sandbox : `${sandbox}, reaching ${hosts.join(', ')}`;

  async function run({ command, timeoutSeconds }: BashInput, { token, update }: ToolContext): Promise<ToolResult> {
    const limitMs = timeoutSeconds === undefined ? timeoutMs : timeoutSeconds * 1000;
    const end = await runShell(command, {
      containment,
      runsGit: true,
      cwd,
      env: createShellEnvironment(options.env),
      timeoutMs: limitMs,
      keepLog,
      onProgress: (output) => update(progressResult(output)),
      token,
    });
    if (end.stopped === 'cancel') throw createInterruptedError(token, partialResult(end, command));
    return shellResult(end, { command, timeoutMs: limitMs });
  }

  return defineTool<BashInput>({
    name: 'bash',
    description: describe(timeoutMs, background !== undefined, containment),
    inputSchema: bashInput(background !== undefined),
    effects: 'execute',
    replay: 'never',
    preview({ command, background: isKept }) {
      const git = isKept ? undefined : findGit(command, containment);
      const writes = git === undefined ? '' : `, where ${git} may write to .git`;
      return { cwd: cwd ?? process.cwd(), sandbox: confined + writes };
    },
    async execute(input, context) {
      if (input.background && background !== undefined) {
        const { id, pid } = await background.start(input.command, { cwd, env: createShellEnvironment(options.env) });
        return { content: `Started in the background as ${id} (pid ${pid})`, details: { id, pid } };
      }
      const work = run(input, context);
      // On a kill the runtime runs this and then checks whether the call has ended. It ends with its processes.
      context.defer(() => work.catch(() => {}));
      return work;
    },
  });
}

const GIT =
  '.git is read-only; to change it, run one plain git command (add, commit, checkout, switch, restore, reset, stash, branch, ' +
  'tag, merge, rm, mv) as the whole command.';
const WRITABLE: Readonly<Record<Exclude<SandboxKind, 'none'>, string>> = {
  workspace: 'to the working folder and to /tmp only',
  'read-only': 'to /tmp only',
};

function describe(timeoutMs: number, background: boolean, { sandbox, hosts }: Containment): string {
  const network = hosts.length === 0 ? 'has no network' : `can reach only ${hosts.join(', ')}`;
  return [
    'Runs a command in bash and returns what it printed, standard output and error together.',
    `It is stopped after ${timeoutMs / 1000} s unless timeoutSeconds says otherwise.`,
    'Everything it starts is ended when it returns, also what was started with & or nohup.',
    ...(sandbox === 'none' ? [] : [`It runs in a sandbox: it can write ${WRITABLE[sandbox]}, and ${network}.`]),
    ...(sandbox === 'workspace' ? [GIT] : []),
    ...(background ? ['To keep something running set background to true.'] : []),
  ].join(' ');
}

const MIN_SECONDS = 0.001;
const MAX_SECONDS = MAX_TIMEOUT_MS / 1_000;
const TIMEOUT_RANGE = `expected ${MIN_SECONDS} to ${MAX_SECONDS}`;

function bashInput(background: boolean): z.ZodType<BashInput> {
  const fields = {
    command: z.string().describe('The command'),
    timeoutSeconds: z
      .number()
      .min(MIN_SECONDS, TIMEOUT_RANGE)
      .max(MAX_SECONDS, TIMEOUT_RANGE)
      .describe('When to give up')
      .optional(),
  };
  if (!background) return strictInput(fields);
  const keep = z.boolean().describe('Keep it running and return its id immediately').optional();
  return strictInput({ ...fields, background: keep });
}

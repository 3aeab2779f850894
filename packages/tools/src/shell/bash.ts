import { createInterruptedError, defineTool, type Tool, type ToolContext, type ToolResult } from '@whoa/core';
import { z } from 'zod';
import { GRACE_MS } from '../process/containment/contained.ts';
import type { Containment } from '../process/containment/containment.ts';
import { createContainment } from '../process/containment/create-containment.ts';
import type { SandboxKind } from '../sandbox/options.ts';
import type { BackgroundProcesses } from './background.ts';
import { createShellEnvironment, type EnvironmentOptions } from './environment.ts';
import { partialResult, progressResult, shellResult } from './result.ts';
import { runShell } from './run-shell.ts';

export interface BashToolOptions {
  readonly cwd?: string;
  /** What of the host's environment commands get: only harmless names unless said otherwise. */
  readonly env?: EnvironmentOptions;
  /** How long a command may take; 2 minutes unless said otherwise. A model may ask for less, or for more up to 10 minutes. */
  readonly timeoutMs?: number;
  /** How long processes have between TERM and KILL. */
  readonly graceMs?: number;
  /** Keep what is too long to be kept otherwise in a file. It goes with the containment. */
  readonly keepLog?: boolean;
  /** `['bash', '-c']` unless said otherwise. */
  readonly shell?: readonly [string, ...string[]];
  /** Lets a model start processes that outlive the call; they belong to this. */
  readonly background?: BackgroundProcesses;
  /** Shared with other tools of the same host, so that there is one watchdog; one of its own unless given. */
  readonly containment?: Containment;
}

export interface BashInput {
  readonly command: string;
  readonly timeoutSeconds?: number | undefined;
  readonly background?: boolean | undefined;
}

const TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 600_000;

/**
 * Creates a shell for a model. Whatever a command starts ends with it, or with the cancel: children, daemons, everything.
 *
 * @returns The tool `bash`.
 * @throws RangeError when an option cannot work.
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
  const { timeoutMs = TIMEOUT_MS, background, containment = createContainment(), graceMs = GRACE_MS } = options;
  const { shell = ['bash', '-c'], keepLog = false, cwd } = options;
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS)) {
    throw new RangeError(`timeoutMs: expected more than 0 and at most ${MAX_TIMEOUT_MS} ms, got ${timeoutMs}`);
  }

  async function run({ command, timeoutSeconds }: BashInput, { token, update }: ToolContext): Promise<ToolResult> {
    const limitMs = timeoutSeconds === undefined ? timeoutMs : timeoutSeconds * 1000;
    const end = await runShell(command, {
      containment,
      shell,
      cwd,
      env: createShellEnvironment(options.env),
      timeoutMs: limitMs,
      graceMs,
      keepLog,
      onProgress: (output) => update(progressResult(output)),
      token,
    });
    if (end.stopped === 'cancel') throw createInterruptedError(token, partialResult(end, command));
    return shellResult(end, { command, timeoutMs: limitMs });
  }

  return defineTool<BashInput>({
    name: 'bash',
    description: describe({ timeoutMs, background: background !== undefined, sandbox: containment.sandbox }),
    inputSchema: bashInput(background !== undefined),
    effects: 'execute',
    replay: 'never',
    preview: () => ({ cwd: cwd ?? process.cwd(), sandbox: containment.sandbox }),
    async execute(input, context) {
      if (input.background && background !== undefined) {
        const { id, pid } = await background.start(input.command, {
          cwd,
          env: createShellEnvironment(options.env),
          shell,
        });
        return { content: `Started in the background as ${id} (pid ${pid})`, details: { id, pid } };
      }
      const work = run(input, context);
      // At kill the runtime runs this and then looks once more whether the call has ended; it ends with its processes.
      context.defer(() => work.catch(() => {}));
      return work;
    },
  });
}

const REACH: Readonly<Record<SandboxKind, string>> = {
  workspace: 'It runs in a sandbox: it can write to the working folder and to /tmp only, and has no network.',
  'read-only': 'It runs in a sandbox: it can write to /tmp only, and has no network.',
  none: '',
};

function describe({
  timeoutMs,
  background,
  sandbox,
}: {
  timeoutMs: number;
  background: boolean;
  sandbox: SandboxKind;
}): string {
  return [
    'Runs a command in bash and returns what it printed, standard output and error together.',
    `It is stopped after ${timeoutMs / 1000} s unless timeoutSeconds says otherwise.`,
    'Everything it starts is ended when it returns, also what was started with & or nohup.',
    REACH[sandbox],
    background ? 'To keep something running set background to true.' : '',
  ]
    .filter((sentence) => sentence !== '')
    .join(' ');
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
  if (!background) return z.object(fields);
  const keep = z.boolean().describe('Keep it running and return at once with its id').optional();
  return z.object({ ...fields, background: keep });
}

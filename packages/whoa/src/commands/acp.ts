import { mkdtempSync, rmdirSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AcpOptions, type SessionSetting, serveAcp } from '@whoa/acp';
import { CancellationToken } from '@whoa/core';
import { describeError } from '@whoa/core/internal';
import { ACP_OPTIONS, OPEN_OPTIONS } from '../agent/agent-options.ts';
import type { SandboxRequest } from '../agent/choose-sandbox.ts';
import { CONTEXT_TOKENS } from '../agent/compact.ts';
import { createPromptTasks } from '../agent/prompt-tasks.ts';
import type { SessionAgentOptions } from '../agent/session-agent.ts';
import { type Command, readArguments, UsageError, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { defaultModelName, KEYED_PROVIDERS } from '../model/model-name.ts';
import type { System } from '../system.ts';
import { createLocalSessions } from '../tasks/local-sessions.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { waitForClose } from '../terminal/interrupts.ts';
import { version } from '../version.ts';

const help = `whoa acp [options]
whoa acp [options] -- COMMAND [ARGUMENT…]     (experimental)

Serves an agent with a shell and file tools to an editor, over the Agent Client Protocol on standard input and output. The editor
starts it; see docs/guides/editors.md for the settings. Prompts are tasks: use 'whoa tasks', 'whoa watch' and 'whoa cancel' on them.

  --model NAME    anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE
  --agent NAME    an agent of the configuration
  --config FILE   the configuration file; defaults to whoa.config.ts in your configuration folder
  --sandbox KIND  what commands may access in the folder of a session: workspace, read-only or none
  --isolate       run each command in a PID namespace, which no process can escape
  --yes           ask only about protected paths and calls that a rule in the configuration covers; needs --sandbox

With COMMAND, works as a proxy between the editor and that agent, and makes the agent stop. Messages pass unchanged. If the agent does
not respond to a cancel in time, the proxy responds for it, closes its questions and calls, and ends the processes that the prompt
started. It restarts an agent that stays stuck. When the editor exits, everything ends. Experimental.

  --wait DURATION      how long the agent may take to respond to a cancel; defaults to 800ms
  --isolate            run the agent in a PID namespace, which no process can escape
  --log FILE           append a record of each stop, one JSON object per line; standard error shows it too
  --sandbox KIND       run the whole agent in the sandbox: workspace or read-only. It can access the current folder, but no keys and no
                       network, except what you list. Each of these can be repeated:
  --folder PATH          a folder that the agent may write to, such as ~/.config/opencode
  --readable PATH        a folder that the agent may read, such as its installation folder
  --key NAME             an environment variable to pass on
  --host NAME            a host that the agent may connect to, such as api.anthropic.com`;

const OPTIONS = { ...OPEN_OPTIONS, ...ACP_OPTIONS } as const;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const end = args.indexOf('--');
  const { values } = readArguments(end === -1 ? args : args.slice(0, end), OPTIONS);
  if (end !== -1) {
    const { runProxy } = await import('../agent/acp-proxy.ts');
    return runProxy(args.slice(end + 1), { values, own, system });
  }
  for (const name of ['wait', 'log', 'folder', 'readable', 'key', 'host'] as const)
    if (values[name] !== undefined) throw new UsageError(`--${name}: only with a command after --`);
  const config = await loadConfig(values.config, system);
  const { env } = system;
  await requireSandbox({ word: values.sandbox, config, yes: values.yes, env });
  const request = { config, values, system };
  const tasks = own(createPromptTasks(request));
  const token = own(new CancellationToken({ name: 'whoa acp' }));
  const options: AcpOptions = {
    // Load this with the first session, not at startup: the editor waits for the response to `initialize`.
    async createAgent(session) {
      const { openSessionAgent } = await import('../agent/session-agent.ts');
      await tasks.open();
      const { agent, approvals } = await openSessionAgent(session, request);
      const used = tasks.use(agent, approvals);
      session.defer(() => used[Symbol.asyncDispose]());
      // Everything is loaded now. Write the cache already: an editor may end us with SIGKILL.
      flushCompileCache();
      return agent;
    },
    startRun: tasks.startRun,
    info: { name: 'whoa', title: 'Whoa', version: version() },
    store: own(createLocalSessions(config)),
    ...(config.policy && { policy: config.policy }),
    contextTokens: config.contextTokens ?? CONTEXT_TOKENS,
    ...(config.stopMode !== undefined && { stopMode: config.stopMode }),
    settings: settingsFor(request),
    authMethods: [LOGIN],
    authenticate: () => {
      // Throws an error that names the variables to set if no key is set.
      defaultModelName(env);
    },
    mcp: { stdio: true, http: true },
    onError: (error) => system.stderr.write(`whoa acp: ${describeError(error)}\n`),
  };
  const connection = own(serveAcp(options, { token }));
  explainWaiting('acp');
  return waitForClose(connection, own);
}

/** Fails at startup if no session could use the requested sandbox. Each session has its own folder, so any folder will do. */
async function requireSandbox(request: Omit<SandboxRequest, 'isTerminal' | 'cwd'>): Promise<void> {
  if (request.word === undefined && request.config.sandbox === undefined && !request.yes) return;
  const { chooseSandbox } = await import('../agent/choose-sandbox.ts');
  const cwd = mkdtempSync(join(tmpdir(), `whoa-probe-${process.pid}-`));
  try {
    await chooseSandbox({ ...request, isTerminal: false, cwd });
  } finally {
    rmdirSync(cwd);
  }
}

const LOGIN: NonNullable<AcpOptions['authMethods']>[number] = {
  id: 'key',
  name: 'A key in the environment',
  description: `Set ${Object.values(KEYED_PROVIDERS)
    .map(({ variable }) => variable)
    .join(' or ')} where the editor configures this agent, and start it again.`,
};

/** The models that the user can choose in the editor: those whose key is set, and the one named by an option or the config. */
function settingsFor({ values: { model }, config, system: { env } }: SessionAgentOptions): readonly SessionSetting[] {
  const keyed = Object.entries(KEYED_PROVIDERS)
    .filter(([, { variable }]) => env[variable])
    .map(([provider, { model: name }]) => `${provider}:${name}`);
  const named = model ?? config.model ?? env['WHOA_MODEL'];
  const names = [...new Set([...(named === undefined ? [] : [named]), ...keyed])];
  if (names.length === 0) return [];
  return [{ id: 'model', name: 'Model', category: 'model', options: names.map((value) => ({ value, name: value })) }];
}

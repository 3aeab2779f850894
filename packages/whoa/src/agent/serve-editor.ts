import { mkdtempSync, rmdirSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AcpOptions, type SessionSetting, serveAcp } from '@whoa/acp';
import { CancellationToken } from '@whoa/core';
import { describeError } from '@whoa/core/internal';
import type { Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { defaultModelName, KEYED_PROVIDERS } from '../model/model-name.ts';
import type { System } from '../system.ts';
import { createLocalSessions } from '../tasks/local-sessions.ts';
import { explainWaiting } from '../terminal/explain-waiting.ts';
import { waitForClose } from '../terminal/interrupts.ts';
import { version } from '../version.ts';
import type { AcpValues } from './agent-options.ts';
import type { SandboxRequest } from './choose-sandbox.ts';
import { CONTEXT_TOKENS } from './compact.ts';
import { createPromptTasks } from './prompt-tasks.ts';
import type { SessionAgentOptions } from './session-agent.ts';

/** Serves our own agent to an editor. Returns the exit code. */
export async function serveEditor(values: AcpValues, own: Use, system: System): Promise<number> {
  const config = await loadConfig(values.config, system);
  const { env } = system;
  await requireSandbox({ word: values.sandbox, config, yes: values.yes, env });
  const request = { config, values, system };
  const tasks = own(createPromptTasks(request));
  const token = own(new CancellationToken({ name: 'whoa acp' }));
  const options: AcpOptions = {
    // Load this with the first session, not at startup: the editor waits for the response to `initialize`.
    async createAgent(session) {
      const { openSessionAgent } = await import('./session-agent.ts');
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
  const { chooseSandbox } = await import('./choose-sandbox.ts');
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

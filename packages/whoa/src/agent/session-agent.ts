import type { AcpSession, McpServer } from '@whoa/acp';
import type { Agent, Tool } from '@whoa/core';
import type { TaskStore } from '@whoa/tasks';
import { type FileContents, mcpTools } from '@whoa/tools';
import type { WhoaConfig } from '../config/config.ts';
import { registeredAgent } from '../tasks/registered-agent.ts';
import { openAgent } from './open-agent.ts';

export interface SessionWishes {
  readonly config: WhoaConfig;
  readonly model: string | undefined;
  readonly agent: string | undefined;
  /** Nobody is asked. */
  readonly yes: boolean;
  /** Where the prompts of all sessions are registered. */
  readonly store: TaskStore;
}

/** Makes the agent of an editor's session, with the editor's files and MCP servers; its prompts are tasks. */
export async function openSessionAgent(session: AcpSession, wishes: SessionWishes): Promise<Agent> {
  const { config, model, agent: name, yes, store } = wishes;
  const tools: Tool[] = [];
  for (const server of session.mcpServers) tools.push(...(await connect(server, session)));
  const open = await openAgent({
    config,
    name,
    model: session.settings['model'] ?? model,
    cwd: session.cwd,
    approve: yes ? () => true : session.approve,
    contents: contentsIn(session),
    tools,
  });
  session.defer(() => open[Symbol.asyncDispose]());
  const onProblem = (error: unknown): void =>
    process.emitWarning(new Error('A prompt could not be registered as a task', { cause: error }));
  const registered = registeredAgent(open.agent, { store, onProblem });
  session.defer(() => registered.settled());
  return registered.agent;
}

/** Files as the editor has them, as far as it offers that. */
function contentsIn({ files: { readText, writeText } }: AcpSession): FileContents {
  return {
    ...(readText && { read: (path, signal) => explained('read', readText(path, { signal })) }),
    ...(writeText && { write: (path, text, signal) => explained('write', writeText(path, text, { signal })) }),
  };
}

async function explained<T>(verb: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Error(`The editor did not ${verb} the file: ${(error as Error).message}`, { cause: error });
  }
}

async function connect({ name, ...transport }: McpServer, session: AcpSession): Promise<readonly Tool[]> {
  const inSession = transport.type === 'stdio' ? { ...transport, cwd: session.cwd } : transport;
  const { token } = session;
  // The editor names the server, but nobody has vouched for what it says about itself.
  const server = await mcpTools({ name, transport: inSession, trustHints: false, token });
  session.defer(() => server[Symbol.asyncDispose]());
  return server.tools;
}

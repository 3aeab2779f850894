import { statSync } from 'node:fs';
import type { AcpSession, McpServer } from '@whoa/acp';
import type { Agent, Tool } from '@whoa/core';
import { describeError, toVisibleLine } from '@whoa/core/internal';
import type { TaskApprovals } from '@whoa/tasks';
import { createMcpTools } from '@whoa/tools';
import type { FileContents } from '@whoa/tools/internal';
import { findOwnFolders } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import { createRunApprovals } from '../approvals/run-approvals.ts';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { System } from '../system.ts';
import { WITHDRAWN } from '../terminal/ask.ts';
import type { AcpValues } from './agent-options.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import { openAgent } from './open-agent.ts';

const MAX_NOTICE = 500;

export interface SessionAgentOptions {
  readonly config: WhoaConfig;
  readonly values: AcpValues;
  readonly system: System;
}

export interface SessionAgent {
  readonly agent: Agent;
  readonly approvals: TaskApprovals;
}

/** Opens the agent of an editor session, with the editor's files and MCP servers. */
export async function openSessionAgent(session: AcpSession, options: SessionAgentOptions): Promise<SessionAgent> {
  const { config, values, system } = options;
  const { env } = system;
  const { cwd } = session;
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    throw new UsageError(`there is no folder '${cwd}'`);
  }
  // Use the folder of the session, not the one that the editor started us in.
  const request = { word: values.sandbox, config, yes: false, isTerminal: false, cwd, env };
  const { options: sandbox, shown } = await chooseSandbox(request);
  system.stderr.write(`whoa acp: ${shown}\n`);
  const approvals = createRunApprovals({
    // A question that is answered from elsewhere is withdrawn in the editor.
    ask: async (question, context, about) => {
      const answer = await session.ask(question, context, about);
      return context.signal.aborted ? WITHDRAWN : answer;
    },
    until: 'until this session is closed',
    decide: createJudge({ rules: config.approvals, yes: values.yes, cwd, ownFolders: findOwnFolders(env) }),
    onRemoteAnswer: ({ decision }) => session.notify(`A question was answered from elsewhere: ${decision}`),
  });
  const open = await openAgent({
    config,
    name: values.agent,
    model: session.settings['model'] ?? values.model,
    cwd,
    surroundings: system,
    sandbox,
    isolate: values.isolate,
    approve: approvals.approve,
    contents: toFileContents(session),
    tools: await connectAll(session, system),
  });
  session.defer(() => open[Symbol.asyncDispose]());
  return { agent: open.agent, approvals };
}

/** Reads and writes files through the editor, if it supports that. */
function toFileContents({ files: { readText, writeText } }: AcpSession): FileContents {
  return {
    ...(readText && { read: (path, options) => explained('read', readText(path, options)) }),
    ...(writeText && { write: (path, text, options) => explained('write', writeText(path, text, options)) }),
  };
}

async function explained<T>(verb: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Error(`The editor did not ${verb} the file: ${(error as Error).message}`, { cause: error });
  }
}

/** Connects to the editor's servers. One that fails is left out, and the user is notified; the session opens without it. */
async function connectAll(session: AcpSession, system: System): Promise<readonly Tool[]> {
  const tools = new Map<string, Tool>();
  const leaveOut = ({ name }: McpServer, error: unknown): void =>
    session.notify(toVisibleLine(`The MCP server '${name}' was left out: ${describeError(error)}`, MAX_NOTICE));
  const all = await Promise.allSettled(session.mcpServers.map((server) => connect(server, session, system)));
  session.token.throwIfCancelled();
  for (const [index, server] of session.mcpServers.entries()) {
    const end = all[index]!;
    const taken = end.status === 'fulfilled' ? end.value.find(({ name }) => tools.has(name)) : undefined;
    if (end.status === 'rejected') leaveOut(server, end.reason);
    else if (taken !== undefined) leaveOut(server, `another server has a tool named '${taken.name}'`);
    else for (const tool of end.value) tools.set(tool.name, tool);
  }
  return [...tools.values()];
}

async function connect(
  { name, ...transport }: McpServer,
  session: AcpSession,
  { stderr }: System,
): Promise<readonly Tool[]> {
  const inSession = transport.type === 'stdio' ? { ...transport, cwd: session.cwd } : transport;
  const { token } = session;
  // Don't trust the hints of the server: the editor names it but does not vouch for it.
  const server = await createMcpTools({ name, transport: inSession, trustHints: false, token });
  session.defer(() => server[Symbol.asyncDispose]());
  if (server.program !== undefined) stderr.write(`whoa acp: the MCP server '${name}' runs ${server.program}\n`);
  return server.tools;
}

import type { AcpSession, McpServer } from '@whoa/acp';
import type { Agent, Tool } from '@whoa/core';
import { createApprovals } from '@whoa/core/approval';
import { createMcpTools, type FileContents } from '@whoa/tools';
import { protectedPaths } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import type { WhoaConfig } from '../config/config.ts';
import { chooseSandbox } from './choose-sandbox.ts';
import { openAgent } from './open-agent.ts';

export interface SessionWishes {
  readonly config: WhoaConfig;
  readonly model: string | undefined;
  readonly agent: string | undefined;
  /** Ask only about protected paths and calls that a rule asks about. */
  readonly yes: boolean;
  /** The value of `--sandbox`. */
  readonly sandbox: string | undefined;
}

/** Opens the agent of an editor session, with the editor's files and MCP servers. */
export async function openSessionAgent(session: AcpSession, wishes: SessionWishes): Promise<Agent> {
  const { config, model, agent: name, yes } = wishes;
  // Use the folder of the session, not the one that the editor started us in.
  const { options: sandbox, shown } = await chooseSandbox({
    word: wishes.sandbox,
    config,
    yes: false,
    isTerminal: false,
    cwd: session.cwd,
  });
  process.stderr.write(`whoa acp: ${shown}\n`);
  const tools: Tool[] = [];
  for (const server of session.mcpServers) tools.push(...(await connect(server, session)));
  const open = await openAgent({
    config,
    name,
    model: session.settings['model'] ?? model,
    cwd: session.cwd,
    sandbox,
    approve: createApprovals({
      ask: session.ask,
      until: 'until this session is closed',
      judge: createJudge({ rules: config.approvals ?? [], yes, cwd: session.cwd, protectedPaths: protectedPaths() }),
    }),
    contents: contentsIn(session),
    tools,
  });
  session.defer(() => open[Symbol.asyncDispose]());
  return open.agent;
}

/** Reads and writes files through the editor, if it supports that. */
function contentsIn({ files: { readText, writeText } }: AcpSession): FileContents {
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

async function connect({ name, ...transport }: McpServer, session: AcpSession): Promise<readonly Tool[]> {
  const inSession = transport.type === 'stdio' ? { ...transport, cwd: session.cwd } : transport;
  const { token } = session;
  // Don't trust the hints of the server: the editor names it but does not vouch for it.
  const server = await createMcpTools({ name, transport: inSession, trustHints: false, token });
  session.defer(() => server[Symbol.asyncDispose]());
  return server.tools;
}

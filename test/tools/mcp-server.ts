// Starts the real MCP server of the fixtures, over stdio or HTTP, and opens its tools.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Tool } from '@whoa/core';
import { createMcpTools, type McpTools } from '@whoa/tools';
import type { McpOptions } from '../../packages/tools/src/mcp/mcp-tools.ts';
import type { McpTransport } from '../../packages/tools/src/mcp/open-connection.ts';
import { createWorkspace, type Workspace } from '../workspace.ts';

export const SERVER: string = join(import.meta.dirname, '../fixtures/mcp-server.ts');

/** A server whose tools become tasks. */
export const TASK_SERVER: string = join(import.meta.dirname, '../fixtures/mcp-task-server.ts');

export interface Opened extends AsyncDisposable {
  readonly mcp: McpTools;
  readonly workspace: Workspace;
  /** Kills an HTTP server. */
  readonly kill: () => Promise<void>;
  readonly tool: (name: string) => Tool;
  readonly log: () => string;
  readonly waitForLog: (text: string) => Promise<void>;
}

export async function openTestServer(
  mode: 'stdio' | 'http',
  { file = SERVER, ...options }: Partial<McpOptions> & { file?: string } = {},
): Promise<Opened> {
  const workspace = createWorkspace({ log: '' });
  const http = mode === 'http' ? await startHttpServer(workspace, { file }) : undefined;
  const transport: McpTransport = http
    ? { type: 'http', url: `http://127.0.0.1:${http.port}/mcp` }
    : {
        type: 'stdio',
        command: process.execPath,
        args: [file, 'stdio', workspace.at('log')],
        // It starts sooner.
        env: { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '' },
        negotiate: file === TASK_SERVER,
      };
  const mcp = await createMcpTools({ name: 'test', transport, ...options });
  return {
    mcp,
    workspace,
    kill: async () => http?.stop(),
    tool: (name) => mcp.tools.find((tool) => tool.name === `test_${name}`)!,
    log: () => workspace.read('log'),
    async waitForLog(text) {
      while (!workspace.read('log').includes(text)) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    async [Symbol.asyncDispose]() {
      await mcp[Symbol.asyncDispose]();
      await http?.stop();
      workspace[Symbol.dispose]();
    },
  };
}

export async function startHttpServer(
  workspace: Workspace,
  { port = 0, file = SERVER }: { port?: number; file?: string } = {},
): Promise<{ port: number; stop(): Promise<void> }> {
  const args = [file, 'http', workspace.at('log'), String(port)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  return { port: Number(chunk.toString()), stop: () => end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
  child.stdout?.destroy();
}

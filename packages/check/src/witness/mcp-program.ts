// The witness for agents without a shell: an MCP server with one tool, which the agent starts as `node mcp-program.js PORT MARKER`.
// A call holds a socket to the kit until the kit lets it finish, or the agent cancels it.
import { appendFileSync } from 'node:fs';
import { connect } from 'node:net';
import { McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { WITNESS_TOOL } from './witness-tool.ts';

const [port = '', marker = ''] = process.argv.slice(2);

const tool = {
  description: 'Runs a witness until it is told to finish. For checks of this agent.',
  inputSchema: z.object({ key: z.string(), mode: z.string() }),
};

function createWitnessServer(): McpServer {
  const server = new McpServer({ name: 'witness', version: '1' }, { capabilities: { tools: {} } });
  server.registerTool(WITNESS_TOOL, tool, async ({ key, mode }, { mcpReq: { signal } }: ServerContext) => ({
    content: [{ type: 'text', text: await witness(key, mode === 'deaf' ? undefined : signal) }],
  }));
  return server;
}

/** Stays until the kit says so; `signal` ends it before. */
function witness(key: string, signal: AbortSignal | undefined): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1', () => {
      socket.write(`${JSON.stringify({ key, role: 'root', pid: process.pid })}\n`);
    });
    const stop = (): void => {
      socket.destroy();
    };
    socket.once('data', () => {
      appendFileSync(marker, `${key}\n`);
      resolve(`witness ${key} finished`);
      stop();
    });
    socket.once('error', () => resolve('the kit is gone'));
    socket.once('close', () => {
      signal?.removeEventListener('abort', stop);
      resolve('stopped');
    });
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}

serveStdio(createWitnessServer);
process.stdin.once('end', () => process.exit(0));

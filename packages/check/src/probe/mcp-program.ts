// The probe for agents without a shell: an MCP server with one tool, which the agent starts as `node mcp-program.js PORT`.
import { McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { attend, PROBE_TOOL } from './attend.ts';

const port = Number(process.argv[2]);

const tool = {
  description: 'Runs a probe until it is asked to finish. For checks of this agent.',
  inputSchema: z.object({ key: z.string(), mode: z.string() }),
};

function createProbeServer(): McpServer {
  const server = new McpServer({ name: 'probe', version: '1' }, { capabilities: { tools: {} } });
  server.registerTool(PROBE_TOOL, tool, async ({ key, mode }, { mcpReq }: ServerContext) => {
    const signal = mode === 'ignore-signals' ? undefined : mcpReq.signal;
    return { content: [{ type: 'text', text: `probe ${key} ${await attend({ port, key, mode, signal })}` }] };
  });
  return server;
}

serveStdio(createProbeServer);
process.stdin.once('end', () => process.exit(0));

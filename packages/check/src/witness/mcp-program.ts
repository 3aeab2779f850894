// The witness for agents without a shell: an MCP server with one tool, which the agent starts as `node mcp-program.js PORT`.
import { McpServer, type ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { attend, WITNESS_TOOL } from './attend.ts';

const port = Number(process.argv[2]);

const tool = {
  description: 'Runs a witness until it is told to finish. For checks of this agent.',
  inputSchema: z.object({ key: z.string(), mode: z.string() }),
};

function createWitnessServer(): McpServer {
  const server = new McpServer({ name: 'witness', version: '1' }, { capabilities: { tools: {} } });
  server.registerTool(WITNESS_TOOL, tool, async ({ key, mode }, { mcpReq }: ServerContext) => {
    const signal = mode === 'deaf' ? undefined : mcpReq.signal;
    return { content: [{ type: 'text', text: `witness ${key} ${await attend({ port, key, mode, signal })}` }] };
  });
  return server;
}

serveStdio(createWitnessServer);
process.stdin.once('end', () => process.exit(0));

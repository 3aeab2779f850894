// An MCP server with an agent as its only tool: node mcp-server.ts BUG. With `ignores-cancel` it never checks the signal.
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
import { runTurn } from './turn-loop.ts';

const bug = process.argv[2];

serveStdio(
  () => {
    const server = new McpServer({ name: 'tiny', version: '1' });
    const inputSchema = z.object({ prompt: z.string() });
    server.registerTool('ask', { description: 'Asks the agent.', inputSchema }, async ({ prompt }, { mcpReq }) => {
      const signal = bug === 'ignores-cancel' ? new AbortController().signal : mcpReq.signal;
      const text = await runTurn([{ role: 'user', content: prompt }], { signal });
      return { content: [{ type: 'text', text }] };
    });
    return server;
  },
  { transport: new StdioServerTransport() },
);
for (const event of ['end', 'close']) process.stdin.once(event, () => process.exit(0));
process.once('SIGTERM', () => process.exit(0));

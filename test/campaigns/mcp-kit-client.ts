// The client that the official MCP conformance kit starts: it opens the tools of the kit's server, and calls each once.
import type { Tool } from '@whoa/core';
import { createMcpTools } from '@whoa/tools';
import { callTool } from '../workspace.ts';

const SAMPLES: Readonly<Record<string, unknown>> = { string: 'text', number: 5, integer: 5, boolean: true };

/** The calls that a scenario requests, if any. */
const { toolCalls } = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  toolCalls?: readonly { readonly name: string; readonly arguments: object }[];
};

await using mcp = await createMcpTools({ name: 'kit', transport: { type: 'http', url: process.argv[2]! } });
const calls =
  toolCalls?.map((call) => ({
    tool: mcp.tools.find(({ name }) => name === `kit_${call.name}`),
    input: call.arguments,
  })) ?? mcp.tools.map((tool) => ({ tool, input: inputFor(tool) }));
for (const { tool, input } of calls) if (tool !== undefined) await callTool(tool, input);

/** A value for each argument. An argument named `schema` gets the schema of the first tool. */
function inputFor({ inputJsonSchema }: Tool): Record<string, unknown> {
  const { properties = {} } = (inputJsonSchema ?? {}) as { properties?: Record<string, { type?: string }> };
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type = 'string' }]) => [
      name,
      name === 'schema' ? mcp.tools[0]!.inputJsonSchema : (SAMPLES[type] ?? {}),
    ]),
  );
}

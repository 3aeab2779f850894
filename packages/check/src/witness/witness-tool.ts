/** The name of the tool that the kit's own MCP server offers. Hosts put the name of the server before it. */
export const WITNESS_TOOL = 'witness_run';

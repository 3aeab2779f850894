import type { Tool as McpTool } from '@modelcontextprotocol/client';

const MAX_TOOLS = 500;
/** What models get of one tool, with every turn: its name, description and schema. */
const MAX_TOOL_BYTES = 2 ** 16;
const MAX_TOOLS_BYTES = 2 ** 19;

/** Throws if a server has more or larger tools than a model should get with every turn. */
export function checkToolSizes(server: string, tools: readonly McpTool[]): void {
  const refuse = (has: string, limit: string): never => {
    throw new Error(`The MCP server '${server}' has ${has}; the limit is ${limit}. Configure it to offer less`);
  };
  if (tools.length > MAX_TOOLS) refuse(`${tools.length} tools`, `${MAX_TOOLS}`);
  let sum = 0;
  for (const { name, title, description, inputSchema } of tools) {
    const bytes = Buffer.byteLength(JSON.stringify([name, title, description, inputSchema]));
    if (bytes > MAX_TOOL_BYTES)
      refuse(`a tool '${name.slice(0, 64)}' with ${inKib(bytes)} of description and schema`, inKib(MAX_TOOL_BYTES));
    sum += bytes;
  }
  if (sum > MAX_TOOLS_BYTES) refuse(`tools with ${inKib(sum)} of descriptions and schemas`, inKib(MAX_TOOLS_BYTES));
}

const inKib = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;

/** What a call relies on. A new description changes nothing: the model keeps the one it has. */
const toTerms = ({ inputSchema, annotations }: McpTool): string => JSON.stringify([inputSchema, annotations]);

/** The tools that a server offered when it was opened, and those it offers now. */
export class ToolList {
  readonly #server: string;
  #opened: ReadonlyMap<string, string> | undefined;
  #current: ReadonlyMap<string, string> = new Map();
  /** Whether the server may offer others since they were last listed. */
  isStale = true;

  constructor(server: string) {
    this.#server = server;
  }

  set(tools: readonly McpTool[]): void {
    this.#current = new Map(tools.map((tool) => [tool.name, toTerms(tool)]));
    this.#opened ??= this.#current;
  }

  /** Throws if a tool is not what it was when the server was opened: approvals and models know only that. */
  check(name: string): void {
    const now = this.#current.get(name);
    if (now === this.#opened?.get(name)) return;
    const what = now === undefined ? 'no longer has the tool' : 'changed the input or the hints of its tool';
    throw new Error(
      `The MCP server '${this.#server}' ${what} '${name}', so it was not called; create the server's tools again`,
    );
  }
}

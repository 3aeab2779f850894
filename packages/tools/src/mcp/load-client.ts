type ClientLibrary = typeof import('@modelcontextprotocol/client');

/** The official client, loaded on first use. */
export async function loadClient(): Promise<ClientLibrary> {
  try {
    return await import('@modelcontextprotocol/client');
  } catch (error) {
    throw new Error('MCP needs its client library: npm install @modelcontextprotocol/client', { cause: error });
  }
}

// An MCP host that writes its own messages, including those that a library would refuse to send or hide.

export const TASKS = 'io.modelcontextprotocol/tasks';

/** The capabilities of a host that knows tasks and can ask its user. */
export const ASKING: object = { extensions: { [TASKS]: {} }, elicitation: { form: {} } };

export type Fields = Record<string, unknown>;

export interface Answered {
  readonly result?: Fields;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface HostOptions {
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly capabilities?: object;
}

let lastId = 0;

/** A request of the 2026-07-28 protocol. */
export function toRequest(method: string, params: Fields, capabilities: object = ASKING) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  return { jsonrpc: '2.0', id: ++lastId, method, params: { ...params, _meta } };
}

/** Sends a request over HTTP, and returns its response. */
export async function ask(
  { url, headers = {}, capabilities }: HostOptions,
  method: string,
  params: Fields,
): Promise<Answered> {
  const name = params['name'] ?? params['taskId'];
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' && { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify(toRequest(method, params, capabilities)),
  });
  const text = await response.text();
  if (!response.headers.get('content-type')?.includes('event-stream')) return JSON.parse(text) as Answered;
  const data = text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .at(-1)!;
  return JSON.parse(data.slice('data: '.length)) as Answered;
}

/** Polls a task until it has this status. */
export async function waitForTask(host: HostOptions, taskId: unknown, status: string): Promise<Fields> {
  for (;;) {
    const { result, error } = await ask(host, 'tasks/get', { taskId: taskId as string });
    if (error !== undefined) throw new Error(error.message);
    if (result!['status'] === status) return result!;
    if (['completed', 'cancelled', 'failed'].includes(result!['status'] as string))
      throw new Error(`it ended: ${JSON.stringify(result)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

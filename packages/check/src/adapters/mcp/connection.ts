import type { Client, Tool, Transport } from '@modelcontextprotocol/client';
import type { Connection, Conversation, Features, TurnEnd } from '../../adapter.ts';
import { type CallTarget, McpConversation } from './conversation.ts';
import type { McpAdapterOptions } from './options.ts';
import { PieceTransport } from './stdio-transport.ts';
import { classifyTask, TASKS_EXTENSION, TaskRequests, wrapTaskResponse } from './tasks.ts';

export type Library = typeof import('@modelcontextprotocol/client');

interface Opening {
  readonly library: Library;
  readonly options: McpAdapterOptions;
  readonly mode: 'auto' | 'legacy';
  readonly transport: Transport;
}

/** How long a server may take to greet. */
const GREETING_MS = 30_000;

const NO_TASKS = 'calls are no tasks here: the client that cancels a call gets no answer to it';

/** A client of one MCP server. */
export class McpConnection implements Connection {
  readonly agent: string;
  readonly features: Features;
  readonly #client: Client;
  readonly #target: CallTarget;
  readonly #questions = { mode: 'allow' as 'allow' | 'by-check' };
  readonly #closing = new AbortController();

  private constructor(client: Client, { transport, options }: Opening, tools: readonly Tool[]) {
    const { name = 'an MCP server', version = '' } = client.getServerVersion() ?? {};
    this.agent = `${name} ${version}`.trim();
    this.#client = client;
    const hasTasks =
      options.tasks !== false && client.getServerCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
    this.features = hasTasks ? {} : { outcome: NO_TASKS, status: NO_TASKS, 'cancel-by-id': NO_TASKS };
    this.#target = {
      client,
      hasTasks,
      ...chooseTool(tools, options),
      ...(transport instanceof PieceTransport && { pieces: transport }),
      questions: this.#questions,
      closing: this.#closing.signal,
    };
  }

  static async connect(opening: Opening): Promise<McpConnection> {
    const { library, transport, mode, options } = opening;
    const extensions: Record<string, Record<string, never>> = options.tasks === false ? {} : { [TASKS_EXTENSION]: {} };
    const client = new library.Client(
      { name: 'whoa-check', version: '1' },
      { versionNegotiation: { mode }, capabilities: { extensions, elicitation: { form: {} } } },
    );
    transport.onmessage = wrapTaskResponse;
    // Late responses to cancelled calls arrive here; the calls themselves have ended.
    client.onerror = () => {};
    try {
      await client.connect(transport, { timeout: GREETING_MS });
      return new McpConnection(client, opening, (await client.listTools()).tools);
    } catch (error) {
      await client.close();
      throw error;
    }
  }

  answerQuestions(mode: 'allow' | 'by-check'): void {
    this.#questions.mode = mode;
  }

  open(): Promise<Conversation> {
    return Promise.resolve(new McpConversation(this.#target));
  }

  async cancelUnknown(): Promise<string> {
    if (this.#target.hasTasks) return this.cancelTask('no-such-task');
    const params = { requestId: 'no-such-request' };
    await this.#client.notification({ method: 'notifications/cancelled', params });
    return 'a notification has no answer';
  }

  async status(id: string): Promise<TurnEnd['kind'] | 'running'> {
    const end = classifyTask(await new TaskRequests(this.#client).get(id));
    return end === 'running' ? end : end.kind;
  }

  cancelTask(id: string): Promise<string> {
    return new TaskRequests(this.#client).cancel(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#client.close();
  }
}

/** Finds the tool that takes a prompt, and the argument for it. */
function chooseTool(
  tools: readonly Tool[],
  { tool: wanted, arguments: given = {} }: McpAdapterOptions,
): Pick<CallTarget, 'tool' | 'argumentsFor'> {
  const candidates = wanted === undefined ? tools : tools.filter(({ name }) => name === wanted);
  for (const { name, inputSchema } of candidates) {
    const { properties = {}, required = [] } = inputSchema;
    const open = (required as string[]).filter((one) => !Object.hasOwn(given, one));
    const isText = (field: string): boolean => (properties[field] as { type?: unknown } | undefined)?.type === 'string';
    const [field = '', ...more] = open;
    if (!isText(field) || (more.length > 0 && wanted === undefined)) continue;
    return { tool: name, argumentsFor: (prompt) => ({ ...given, [field]: prompt }) };
  }
  const names = tools.map(({ name }) => name).join(', ');
  throw new Error(`no tool accepts a single text as its prompt; choose one with --tool (it has: ${names})`);
}

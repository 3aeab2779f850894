import * as acp from '@agentclientprotocol/sdk';
import type { Adapter, Answer, Connection, Conversation, Turn } from '../../adapter.ts';
import { within } from '../../clock.ts';
import { type AgentCommand, connectProcess, type StartedProcess } from '../agent-process.ts';
import { PieceWriter, splitLines } from '../frames.ts';
import { SessionLog } from './session-log.ts';

/** How long an agent whose output has ended may take to exit. */
const EXIT_MS = 1_000;
/** How long an agent may take to greet. */
const GREETING_MS = 120_000;

const NO_TASKS = 'ACP has no tasks: only the connection that sent a prompt can cancel it';

/**
 * Checks an agent that supports the Agent Client Protocol over standard input and output, as an editor does.
 *
 * @returns The adapter for `runChecks`.
 */
export function createAcpAdapter(command: AgentCommand): Adapter {
  return {
    protocol: 'acp',
    features: {
      cancel: true,
      conversation: true,
      'one-piece': true,
      outcome: true,
      calls: true,
      'cancel-request': true,
      close: true,
      process: true,
      stdio: true,
      status: NO_TASKS,
      'cancel-by-id': NO_TASKS,
      'second-instance': NO_TASKS,
    },
    connect: (harness) => connectProcess(command, harness, (process) => connectAgent(process, harness.folder)),
    async [Symbol.asyncDispose]() {},
  };
}

type Permission = acp.RequestPermissionRequest;

async function connectAgent(process: StartedProcess, cwd: string): Promise<Connection> {
  const log = new SessionLog();
  let mode: 'allow' | 'by-check' = 'allow';
  let probe: readonly string[] = [];
  const ask = ({ sessionId, options }: Permission, signal: AbortSignal): Promise<acp.RequestPermissionResponse> => {
    const { promise, resolve } = Promise.withResolvers<acp.RequestPermissionResponse>();
    const answer = (chosen: Answer): void => resolve(outcomeFor(chosen, options));
    log.findTurn(sessionId)?.record({ what: 'question', answer, isWithdrawn: () => signal.aborted });
    if (mode === 'allow') answer('allow');
    return promise;
  };
  const { writer, stream } = tapFrames(process, log);
  const { agent: client } = acp
    .client({ name: 'whoa-check' })
    .onNotification(acp.methods.client.session.update, () => {})
    .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) => ask(params, signal))
    .connect(stream);
  const exited = process.exited.then(() => log.gone('the process of the agent ended'));
  const { agentInfo, agentCapabilities } = await greet(client, process, exited);
  const canClose = agentCapabilities?.sessionCapabilities?.close !== undefined;
  return {
    agent: agentInfo ? `${agentInfo.title ?? agentInfo.name} ${agentInfo.version}` : 'an agent without a name',
    features: canClose ? {} : { close: 'the agent does not offer session/close' },
    process,
    answerQuestions(chosen) {
      mode = chosen;
    },
    async open() {
      const [command = '', ...args] = probe;
      const mcpServers: acp.McpServer[] = command === '' ? [] : [{ name: 'probe', command, args, env: [] }];
      const { sessionId } = await client.request(acp.methods.agent.session.new, { cwd, mcpServers });
      return createConversation({ client, writer, log, sessionId });
    },
    offerProbe(command) {
      probe = command;
    },
    async cancelUnknown() {
      await client.notify(acp.methods.agent.session.cancel, { sessionId: 'no-such-session' });
      return 'a notification has no answer';
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}

/** Reads along with a client, which learns the order of messages and responses only after its own handlers. */
function tapFrames({ child: { stdin, stdout } }: StartedProcess, log: SessionLog) {
  const sent = splitLines((frame) => log.sent(frame));
  const received = splitLines((frame) => log.received(frame));
  const writer = new PieceWriter((piece) => {
    sent(piece);
    stdin.write(piece);
  });
  const writable = new WritableStream<Uint8Array>({ write: (message) => writer.write(message) });
  const readable = new ReadableStream<Uint8Array>({
    start(controller) {
      stdout.on('data', (chunk: Buffer) => {
        received(chunk);
        controller.enqueue(new Uint8Array(chunk));
      });
      stdout.once('end', () => controller.close());
      stdout.once('error', (error) => controller.error(error));
    },
  });
  return { writer, stream: acp.ndJsonStream(writable, readable) };
}

async function greet(client: acp.ClientContext, process: StartedProcess, exited: Promise<void>) {
  const greeted = client.request(acp.methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: {},
    clientInfo: { name: 'whoa-check', version: '1' },
  });
  const isThere = await within(GREETING_MS, Promise.race([greeted, exited]));
  if (!isThere) throw new Error(`the agent did not answer 'initialize' within ${GREETING_MS / 1_000} s`);
  // The end of its output may be read before its exit.
  const hasLeft = (): Promise<boolean> => within(EXIT_MS, exited);
  const isGone = process.hasExited() || (await greeted.then(() => false, hasLeft));
  if (isGone) throw new Error("the agent ended before it answered 'initialize'");
  return greeted;
}

function outcomeFor(chosen: Answer, options: Permission['options']): acp.RequestPermissionResponse {
  if (chosen === 'cancelled') return { outcome: { outcome: 'cancelled' } };
  const option =
    options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always');
  return { outcome: { outcome: 'selected', optionId: option?.optionId ?? options[0]?.optionId ?? 'allow' } };
}

interface Session {
  readonly client: acp.ClientContext;
  readonly writer: PieceWriter;
  readonly log: SessionLog;
  readonly sessionId: string;
}

function createConversation({ client, writer, log, sessionId }: Session): Conversation {
  const start = (prompt: string): Turn => {
    const turn = log.expect(sessionId);
    const text = [{ type: 'text' as const, text: prompt }];
    // The log reads the end from the wire.
    client.request(acp.methods.agent.session.prompt, { sessionId, prompt: text }).catch(() => {});
    return turn;
  };
  const cancel = (): Promise<void> => client.notify(acp.methods.agent.session.cancel, { sessionId });
  return {
    start,
    cancel,
    startWithCancel(prompt, order) {
      writer.joinNextTwo();
      const turn = order === 'prompt-first' ? start(prompt) : undefined;
      cancel().catch(() => {});
      return turn ?? start(prompt);
    },
    async cancelRequest(turn) {
      const requestId = log.requestId(turn) as string | number;
      await client.notify(acp.methods.protocol.cancelRequest, { requestId });
    },
    async close() {
      await client.request(acp.methods.agent.session.close, { sessionId });
    },
  };
}

import * as acp from '@agentclientprotocol/sdk';
import type { Adapter, Answer, Connection, Conversation, Features, Turn } from '../../adapter.ts';
import { within } from '../../clock.ts';
import type { CheckHarness } from '../../harness/check-harness.ts';
import type { TurnLog } from '../../turn-log.ts';
import { type AgentCommand, type StartedProcess, startProcess } from '../agent-process.ts';
import { type FrameTap, tapFrames } from '../frames.ts';
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
    connect: (harness) => AcpConnection.connect(command, harness),
    async [Symbol.asyncDispose]() {},
  };
}

type Permission = acp.RequestPermissionRequest;

/** The wire to an agent. */
interface Line {
  readonly client: acp.ClientContext;
  readonly tap: FrameTap;
  readonly log: SessionLog;
}

interface Parts extends Line {
  readonly process: StartedProcess;
  readonly folder: string;
  readonly questions: Questions;
}

class AcpConnection implements Connection {
  readonly agent: string;
  readonly features: Features;
  readonly process: StartedProcess;
  readonly #parts: Parts;
  #probe: readonly string[] = [];

  private constructor(parts: Parts, { agentInfo, agentCapabilities }: acp.InitializeResponse) {
    this.process = parts.process;
    this.#parts = parts;
    this.agent = agentInfo ? `${agentInfo.title ?? agentInfo.name} ${agentInfo.version}` : 'an agent without a name';
    const canClose = agentCapabilities?.sessionCapabilities?.close !== undefined;
    this.features = canClose ? {} : { close: 'the agent does not offer session/close' };
  }

  static async connect(command: AgentCommand, harness: CheckHarness): Promise<AcpConnection> {
    const process = startProcess(command, harness);
    try {
      return await AcpConnection.#greet(process, harness);
    } catch (error) {
      await process[Symbol.asyncDispose]();
      const stderrTail = process.stderrTail().trim();
      throw new Error(`${(error as Error).message}${stderrTail === '' ? '' : `\n${stderrTail}`}`, { cause: error });
    }
  }

  static async #greet(process: StartedProcess, harness: CheckHarness): Promise<AcpConnection> {
    const log = new SessionLog();
    const { stdin, stdout } = process.child;
    const tap = tapFrames(stdin, stdout, {
      onSent: (frame) => log.sent(frame),
      onReceived: (frame) => log.received(frame),
    });
    const exited = process.exited.then(() => log.gone('the process of the agent ended'));
    const questions = new Questions(log);
    const { agent: client } = acp
      .client({ name: 'whoa-check' })
      .onNotification(acp.methods.client.session.update, () => {})
      .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) => questions.ask(params, signal))
      .connect(acp.ndJsonStream(tap.writable, tap.readable));
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
    return new AcpConnection({ process, client, tap, log, folder: harness.folder, questions }, await greeted);
  }

  answerQuestions(mode: 'allow' | 'by-check'): void {
    this.#parts.questions.mode = mode;
  }

  async open(): Promise<Conversation> {
    const [command = '', ...args] = this.#probe;
    const mcpServers: acp.McpServer[] = command === '' ? [] : [{ name: 'probe', command, args, env: [] }];
    const { client, folder } = this.#parts;
    const { sessionId } = await client.request(acp.methods.agent.session.new, { cwd: folder, mcpServers });
    return new AcpConversation(this.#parts, sessionId);
  }

  offerProbe(command: readonly string[]): void {
    this.#probe = command;
  }

  async cancelUnknown(): Promise<string> {
    await this.#parts.client.notify(acp.methods.agent.session.cancel, { sessionId: 'no-such-session' });
    return 'a notification has no answer';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.process[Symbol.asyncDispose]();
  }
}

/** Answers what the agent asks. */
class Questions {
  mode: 'allow' | 'by-check' = 'allow';
  readonly #log: SessionLog;

  constructor(log: SessionLog) {
    this.#log = log;
  }

  ask({ sessionId, options }: Permission, signal: AbortSignal): Promise<acp.RequestPermissionResponse> {
    const { promise, resolve } = Promise.withResolvers<acp.RequestPermissionResponse>();
    const answer = (chosen: Answer): void => resolve(outcomeFor(chosen, options));
    const { mode } = this;
    this.#log.findTurn(sessionId)?.record({ what: 'question', answer, isWithdrawn: () => signal.aborted });
    if (mode === 'allow') answer('allow');
    return promise;
  }
}

function outcomeFor(chosen: Answer, options: Permission['options']): acp.RequestPermissionResponse {
  if (chosen === 'cancelled') return { outcome: { outcome: 'cancelled' } };
  const option =
    options.find(({ kind }) => kind === 'allow_once') ?? options.find(({ kind }) => kind === 'allow_always');
  return { outcome: { outcome: 'selected', optionId: option?.optionId ?? options[0]?.optionId ?? 'allow' } };
}

class AcpConversation implements Conversation {
  readonly #line: Line;
  readonly #sessionId: string;

  constructor(line: Line, sessionId: string) {
    this.#line = line;
    this.#sessionId = sessionId;
  }

  start(prompt: string): Turn {
    const { client, log } = this.#line;
    const sessionId = this.#sessionId;
    const turn = log.expect(sessionId);
    const sent = client.request(acp.methods.agent.session.prompt, {
      sessionId,
      prompt: [{ type: 'text', text: prompt }],
    });
    // The log reads the end from the wire.
    sent.catch(() => {});
    return turn;
  }

  async cancel(): Promise<void> {
    await this.#line.client.notify(acp.methods.agent.session.cancel, { sessionId: this.#sessionId });
  }

  startWithCancel(prompt: string, order: 'prompt-first' | 'cancel-first'): Turn {
    const { tap } = this.#line;
    tap.hold();
    let cancelled: Promise<void>;
    let turn: Turn;
    if (order === 'prompt-first') {
      turn = this.start(prompt);
      cancelled = this.cancel();
    } else {
      cancelled = this.cancel();
      turn = this.start(prompt);
    }
    // Both have passed through the client's queue when its last write has.
    cancelled.then(() => setImmediate(() => tap.sendInOnePiece())).catch(() => {});
    return turn;
  }

  async cancelRequest(turn: Turn): Promise<void> {
    const { client, log } = this.#line;
    const requestId = log.requestId(turn as TurnLog) as string | number;
    await client.notify(acp.methods.protocol.cancelRequest, { requestId });
  }

  async close(): Promise<void> {
    await this.#line.client.request(acp.methods.agent.session.close, { sessionId: this.#sessionId });
  }
}

// Sends broken and misplaced frames to real agent processes and checks every line that comes back.
import { createVirtualWorld } from '@whoa/core/testing';
import { type AgentProcess, type RawMessage, startAgent } from './editor.ts';
import { FrameMaker } from './frames.ts';

const BURST = 50;

export interface FuzzReport {
  readonly frames: number;
  readonly answers: number;
  /** How many prompts among the frames were run to an end. */
  readonly prompts: number;
  readonly processes: number;
  /** The longest wait for the response to a valid request between the invalid ones. */
  readonly slowestMs: number;
  readonly problems: readonly string[];
}

export interface FuzzOptions {
  readonly frames: number;
  readonly seed: number;
  readonly framesPerProcess: number;
  /** A valid request that waits longer means that the agent hangs. */
  readonly hangMs: number;
}

/** Sends frames to one process after another: one without `initialize`, one for v1, one for v2, and again. */
export async function fuzz(options: FuzzOptions): Promise<FuzzReport> {
  const world = createVirtualWorld({ seed: options.seed });
  const report = { frames: 0, answers: 0, prompts: 0, processes: 0, slowestMs: 0, problems: [] as string[] };
  while (report.frames < options.frames && report.problems.length === 0) {
    const version = report.processes % 3;
    const frames = Math.min(options.framesPerProcess, options.frames - report.frames);
    const agent = startAgent();
    try {
      const sessions = version === 0 ? [] : await initialize(agent, version);
      const one = await fuzzProcess(agent, {
        maker: new FrameMaker(() => world.random(), sessions),
        frames,
        hangMs: options.hangMs,
      });
      report.slowestMs = Math.max(report.slowestMs, one.slowestMs);
      report.problems.push(...one.problems.map((problem) => `process ${report.processes}: ${problem}`));
    } finally {
      await agent[Symbol.asyncDispose]();
    }
    if (agent.child.exitCode !== 0) {
      const mode = `code ${agent.child.exitCode}, signal ${agent.child.signalCode}`;
      report.problems.push(`process ${report.processes} ended with ${mode}: ${agent.stderr().slice(-2_000)}`);
    }
    report.problems.push(...agent.messages.flatMap(findFaults), ...answeredTwice(agent.messages));
    report.prompts += agent.messages.filter(isEndOfPrompt).length;
    report.frames += frames;
    report.answers += agent.messages.length;
    report.processes++;
  }
  return report;
}

async function fuzzProcess(
  agent: AgentProcess,
  { maker, frames, hangMs }: { maker: FrameMaker; frames: number; hangMs: number },
): Promise<{ slowestMs: number; problems: string[] }> {
  let slowestMs = 0;
  let read = 0;
  // The first answer waits for the process to start.
  agent.child.stdin.write(line({ id: 'ready', method: 'session/list', params: {} }));
  await agent.waitFor(({ id }) => id === 'ready');
  for (let sent = 0; sent < frames; sent += BURST) {
    const burst = Array.from({ length: Math.min(BURST, frames - sent) }, () => maker.next());
    const id = `probe-${sent}`;
    const start = performance.now();
    agent.child.stdin.write(Buffer.concat([...burst, line({ id, method: 'session/list', params: {} })]));
    if (!(await answersWithin(agent, id, hangMs))) {
      return {
        slowestMs,
        problems: [`no response within ${hangMs} ms after frame ${sent}; ${agent.stderr().slice(-2_000)}`],
      };
    }
    slowestMs = Math.max(slowestMs, performance.now() - start);
    for (const { result } of agent.messages.slice(read)) {
      if (typeof result?.['sessionId'] === 'string') maker.know(result['sessionId']);
    }
    read = agent.messages.length;
  }
  return { slowestMs, problems: [] };
}

async function initialize(agent: AgentProcess, version: number): Promise<string[]> {
  const info = { name: 'fuzz', version: '1' };
  agent.child.stdin.write(line({ id: 'hello', method: 'initialize', params: { protocolVersion: version, info } }));
  await agent.waitFor(({ id }) => id === 'hello');
  const sessions: string[] = [];
  for (const id of ['one', 'two', 'three']) {
    agent.child.stdin.write(line({ id, method: 'session/new', params: { cwd: '/tmp', mcpServers: [] } }));
    const { result } = await agent.waitFor((message) => message.id === id);
    sessions.push(String(result?.['sessionId']));
  }
  return sessions;
}

async function answersWithin(agent: AgentProcess, id: string, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const answer = agent.waitFor((message) => message.id === id).then(() => true);
  const gone = agent.exited.then(() => false);
  const answered = await Promise.race([answer, late, gone]);
  clearTimeout(timer);
  return answered;
}

/** Returns what is wrong with a message. It has already been parsed as JSON. */
function findFaults(message: RawMessage): string[] {
  const { jsonrpc, id, method, result, error } = message as RawMessage & { jsonrpc?: unknown };
  const isCall = typeof method === 'string' && result === undefined && error === undefined;
  const isAnswer = method === undefined && id !== undefined && (result === undefined) !== (error === undefined);
  const isError = error === undefined || (Number.isInteger(error.code) && typeof error.message === 'string');
  return jsonrpc === '2.0' && (isCall || isAnswer) && isError
    ? []
    : [`not valid: ${JSON.stringify(message).slice(0, 500)}`];
}

/** Ids from 1,000 upwards are unique. */
function answeredTwice(messages: readonly RawMessage[]): string[] {
  const seen = new Set<unknown>();
  return messages.flatMap(({ id, method }) => {
    if (method !== undefined || typeof id !== 'number' || id < 1_000) return [];
    const isTwice = seen.has(id);
    seen.add(id);
    return isTwice ? [`answered twice: ${id}`] : [];
  });
}

function isEndOfPrompt({ result, params }: RawMessage): boolean {
  return result?.stopReason !== undefined || params?.update?.['state'] === 'idle';
}

function line(message: object): Buffer {
  return Buffer.from(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}

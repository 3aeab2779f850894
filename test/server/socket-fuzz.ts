// Sends broken and misplaced frames over real sockets and judges every frame that comes back.
import { once } from 'node:events';
import { createAgent } from '@whoa/core';
import { createScriptedModel, createVirtualWorld } from '@whoa/core/testing';
import type { UIMessageChunk } from 'ai';
import { WebSocket } from 'ws';
import { createChatHandler } from '../../packages/server/src/chat/chat-handler.ts';
import { listen } from '../../packages/server/src/listen.ts';
import { FrameMaker } from './socket-frames.ts';

const BURST = 50;
const FRAMES_PER_SOCKET = 2_000;

export interface SocketFuzzReport {
  readonly frames: number;
  readonly answers: number;
  readonly byType: Readonly<Record<string, number>>;
  readonly sockets: number;
  /** The longest that a good request between the bad ones had to wait. */
  readonly slowestMs: number;
  readonly problems: readonly string[];
}

interface Answer {
  readonly type: string;
  readonly requestId: string;
  readonly sequence?: number;
  readonly code?: string;
  readonly errorText?: string;
}

const ANSWERS = new Set(['start', 'chunk', 'end', 'error', 'no-active', 'receipt', 'ping']);
const limits = { requestsPerSecond: 1e6, requestsBurst: 1e6, maxStreams: 1_000 };

/** What answers: an agent, and a loop of the application's own. */
function kinds(report: (error: unknown) => void) {
  const common = {
    authenticate: () => 'ada',
    limits,
    hooks: { 'hook-error': ({ error }: { error: unknown }) => report(error) },
  };
  const agent = createAgent({ name: 'fuzzed', model: createScriptedModel([['Well.']]), tools: [] });
  return [
    () => createChatHandler({ ...common, agent }),
    () => createChatHandler({ ...common, reply: () => ({ toUIMessageStream: () => wellSaid() }) }),
  ];
}

async function* wellSaid(): AsyncGenerator<UIMessageChunk> {
  yield* [
    { type: 'start-step' },
    { type: 'text-start', id: 't' },
    { type: 'text-delta', id: 't', delta: 'Well.' },
    { type: 'text-end', id: 't' },
    { type: 'finish-step' },
  ] as UIMessageChunk[];
  await Promise.resolve();
}

export async function fuzzSockets(options: {
  frames: number;
  seed: number;
  hangMs: number;
}): Promise<SocketFuzzReport> {
  const world = createVirtualWorld({ seed: options.seed });
  const problems: string[] = [];
  const report = { frames: 0, answers: 0, byType: {} as Record<string, number>, sockets: 0, slowestMs: 0, problems };
  const onReject = (error: unknown): void => void problems.push(`unhandled rejection: ${String(error)}`);
  process.on('unhandledRejection', onReject);
  try {
    for (const create of kinds((error) => problems.push(`internal: ${String(error)}`))) {
      await using handler = create();
      await using listening = await listen(handler);
      const url = `${listening.url.replace('http', 'ws')}/api/chat`;
      const maker = new FrameMaker(() => world.random());
      const until = report.frames + options.frames / 2;
      while (report.frames < until && problems.length === 0) {
        const frames = Math.min(FRAMES_PER_SOCKET, until - report.frames);
        const answers = await fuzzSocket(url, { maker, frames, hangMs: options.hangMs, report });
        report.frames += frames;
        report.sockets++;
        report.answers += answers.length;
        for (const { type } of answers) report.byType[type] = (report.byType[type] ?? 0) + 1;
        problems.push(...answers.flatMap(faultsOf), ...outOfOrder(answers));
      }
    }
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('unhandledRejection', onReject);
  }
  return report;
}

async function fuzzSocket(
  url: string,
  {
    maker,
    frames,
    hangMs,
    report,
  }: {
    maker: FrameMaker;
    frames: number;
    hangMs: number;
    report: { slowestMs: number; problems: string[] };
  },
): Promise<readonly Answer[]> {
  const socket = new WebSocket(url);
  const answers: Answer[] = [];
  let probed = Promise.withResolvers<void>();
  socket.on('message', (data: Buffer) => {
    const answer = JSON.parse(data.toString()) as Answer;
    answers.push(answer);
    if (answer.requestId.startsWith('probe')) probed.resolve();
  });
  socket.on('close', (code) => {
    if (code !== 1000) probed.reject(new Error(`the socket was closed with ${code}`));
  });
  await once(socket, 'open');
  try {
    for (let sent = 0; sent < frames; sent += BURST) {
      for (let i = 0; i < Math.min(BURST, frames - sent); i++) socket.send(maker.next());
      probed = Promise.withResolvers();
      const at = performance.now();
      socket.send(JSON.stringify({ type: 'resume', requestId: `probe${sent}`, id: 'nothing', headers: {}, body: {} }));
      const timer = setTimeout(() => probed.reject(new Error(`no answer within ${hangMs} ms`)), hangMs);
      await probed.promise.finally(() => clearTimeout(timer));
      report.slowestMs = Math.max(report.slowestMs, Math.round(performance.now() - at));
    }
  } catch (error) {
    report.problems.push(String(error));
  }
  socket.close(1000);
  if (socket.readyState !== WebSocket.CLOSED) await once(socket, 'close');
  return answers;
}

function faultsOf(answer: Answer): string[] {
  if (!ANSWERS.has(answer.type)) return [`unknown answer ${JSON.stringify(answer)}`];
  if (answer.type !== 'error') return [];
  const isTold = typeof answer.code === 'string' && typeof answer.errorText === 'string';
  return isTold && answer.code !== 'internal' ? [] : [`a bad error: ${JSON.stringify(answer)}`];
}

/** The chunks of each reading count up from 0, between its start and its end. */
function outOfOrder(answers: readonly Answer[]): string[] {
  const next = new Map<string, number>();
  const problems: string[] = [];
  for (const { type, requestId, sequence } of answers) {
    if (type === 'start') next.set(requestId, 0);
    if (type === 'chunk') {
      if (next.get(requestId) !== sequence) problems.push(`chunk ${sequence} of ${requestId} is out of order`);
      next.set(requestId, sequence! + 1);
    }
    if (type === 'end' && !next.delete(requestId)) problems.push(`${requestId} ends twice`);
  }
  return problems;
}

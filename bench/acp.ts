// How long a cancel takes from the client's side, compared with the SDK's bare round trip over the same kind of pipe.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 200;
const WARM_UP = 20;
const MAX_CANCEL_MS = 50;
const PROXY_ROUNDS = 2_000;
const WHOA = join(import.meta.dirname, '../packages/whoa/src/bin.ts');
const AGENT = join(import.meta.dirname, '../test/acp/agent.ts');

function start(): { stream: acp.Stream; stop: () => void } {
  const args = ['--conditions=@whoa/source', '--no-warnings', AGENT];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), output), stop: () => child.stdin.end() };
}

/** Prompts, waits until the work is running, cancels, and measures the time until the response. */
async function measure(prompt: string, isUnderWay: (update: acp.SessionUpdate) => boolean): Promise<void> {
  const { stream, stop } = start();
  let underWay = (): void => {};
  const { agent } = acp
    .client({ name: 'bench' })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      if (isUnderWay(params.update)) underWay();
    })
    .connect(stream);
  const { session, initialize } = acp.methods.agent;
  await agent.request(initialize, { protocolVersion: 1, clientCapabilities: {} });
  const cancels: number[] = [];
  const roundTrips: number[] = [];
  for (let round = -WARM_UP; round < ROUNDS; round++) {
    const { sessionId } = await agent.request(session.new, { cwd: '/tmp', mcpServers: [] });
    const started = new Promise<void>((resolve) => {
      underWay = resolve;
    });
    const answer = agent.request(session.prompt, { sessionId, prompt: [{ type: 'text', text: prompt }] });
    await started;
    const cancelled = performance.now();
    await agent.notify(session.cancel, { sessionId });
    const { stopReason } = await answer;
    const answered = performance.now();
    if (stopReason !== 'cancelled') throw new Error(`answered ${stopReason}`);
    await agent.request(session.close, { sessionId });
    const asked = performance.now();
    // The cheapest request there is: the SDK parses it, finds no such method, and answers.
    await agent.request('_nobody/knows').catch(() => {});
    if (round < 0) continue;
    cancels.push(answered - cancelled);
    roundTrips.push(performance.now() - asked);
  }
  stop();
  const [p50, p95, p99] = [0.5, 0.95, 0.99].map((share) => percentile(cancels, share)) as [number, number, number];
  report({
    name: `cancel to answer, ${prompt}, p95 beside the goal of ${MAX_CANCEL_MS} ms (ms)`,
    ours: p95,
    bare: MAX_CANCEL_MS,
    goal: { atMost: 1 },
    more: { p50: p50.toFixed(2), p99: p99.toFixed(2) },
  });
  report({
    name: `cancel to answer, ${prompt}, p50 beside the SDK's bare round trip (ms)`,
    ours: p50,
    bare: percentile(roundTrips, 0.5),
    goal: { atMost: 25 },
    more: { roundTripP95: percentile(roundTrips, 0.95).toFixed(2) },
  });
}

await measure('talk', (update) => update.sessionUpdate === 'agent_message_chunk');
await measure('slow', (update) => update.sessionUpdate === 'tool_call_update' && update.status === 'in_progress');

/** The cost of the proxy: a round trip with and without it, in turn in one run, and its memory under updates. */
async function measureProxy(): Promise<void> {
  const flood = [process.execPath, '--no-warnings', join(import.meta.dirname, 'children/acp-flood.ts')];
  const whoa = [process.execPath, '--conditions=@whoa/source', '--no-warnings', WHOA, 'acp', '--', ...flood];
  const bare = await open(flood);
  const proxied = await open(whoa);
  const times: Record<'bare' | 'proxied', number[]> = { bare: [], proxied: [] };
  for (let round = -WARM_UP; round < PROXY_ROUNDS; round++) {
    for (const [name, line] of Object.entries({ bare, proxied })) {
      const asked = performance.now();
      await line.ask('_nobody/knows', {});
      if (round >= 0) times[name as keyof typeof times].push(performance.now() - asked);
    }
  }
  const [direct, through] = [percentile(times.bare, 0.5), percentile(times.proxied, 0.5)];
  report({
    name: 'what the proxy adds to a round trip, p50 beside the goal of 1 ms (ms)',
    ours: through - direct,
    bare: 1,
    goal: { atMost: 1 },
    more: { bareP50: direct.toFixed(3), proxiedP50: through.toFixed(3) },
  });
  await proxied.ask('session/new', {});
  const flooded = (megabytes: number): Promise<unknown> =>
    proxied.ask('session/prompt', { sessionId: 's', prompt: [{ type: 'text', text: String(megabytes) }] });
  await flooded(20);
  const before = residentBytes(proxied.pid);
  const startedAt = performance.now();
  let peak = before;
  const watch = setInterval(() => (peak = Math.max(peak, residentBytes(proxied.pid))), 20);
  await flooded(100);
  clearInterval(watch);
  report({
    name: 'memory of the proxy in 100 MB of updates beside that after 20 MB (MB)',
    ours: peak / 1e6,
    bare: before / 1e6,
    goal: { atMost: 1.5 },
    more: { seconds: ((performance.now() - startedAt) / 1_000).toFixed(2) },
  });
  bare.stop();
  proxied.stop();
}

interface Line {
  readonly pid: number;
  ask(method: string, params: object): Promise<unknown>;
  stop(): void;
}

/** A process that answers one request after the other. */
async function open([file = '', ...args]: readonly string[]): Promise<Line> {
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  let lastId = 0;
  let answered: () => void = () => {};
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.includes('"id":')) answered();
  });
  const ask = (method: string, params: object): Promise<void> =>
    new Promise((resolve) => {
      answered = resolve;
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: ++lastId, method, params })}\n`);
    });
  await ask('initialize', { protocolVersion: 1 });
  return { pid: child.pid!, ask, stop: () => child.stdin.end() };
}

function residentBytes(pid: number): number {
  const [, kib = '0'] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) * 1_024;
}

await measureProxy();

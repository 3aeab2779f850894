// How long a cancel takes from the client's side, beside the SDK's bare round trip over the same kind of pipe.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { percentile, report } from './measure/measure.ts';

const ROUNDS = 200;
const WARM_UP = 20;
const MAX_CANCEL_MS = 50;
const AGENT = join(import.meta.dirname, '../test/acp/agent.ts');

function start(): { stream: acp.Stream; stop: () => void } {
  const args = ['--conditions=@whoa/source', '--no-warnings', AGENT];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  return { stream: acp.ndJsonStream(Writable.toWeb(child.stdin), output), stop: () => child.stdin.end() };
}

/** Prompts, waits until the work is under way, cancels, and takes the time until the answer. */
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

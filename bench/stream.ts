// A cancel mid-reply: how long until the run has settled, and until the server sees the connection close.
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgent } from '@whoa/core';
import { streamText } from 'ai';
import { percentile, report } from './measure/measure.ts';
import { loadPiAgent } from './peers/pi-agent.ts';

/** The figure is the median of this many runs. */
const RUNS = 9;
const ROUNDS = 100;
/** Warm-up rounds, because the code of a long-running process is compiled. */
const WARM_UP = 100;

/** Streams until the reply has started, then calls `cancel`, which resolves when everything has settled. */
interface Contestant {
  readonly name: string;
  readonly start: (provider: LoopbackProvider) => Promise<{ cancel: () => Promise<unknown> }>;
}

const bare: Contestant = {
  name: 'a bare fetch',
  async start({ url }) {
    const controller = new AbortController();
    const body = JSON.stringify({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hello' }] });
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers,
      body,
      signal: controller.signal,
    });
    const reader = response.body!.getReader();
    await reader.read();
    return {
      cancel() {
        const ended = reader.read().catch(() => {});
        controller.abort();
        return ended;
      },
    };
  },
};

const ours: Contestant = {
  name: 'whoa',
  async start({ url }) {
    const model = fromAiSdk(createOpenAI({ baseURL: url, apiKey: 'none' }).chat('m'));
    const run = createAgent({ name: 'bench', model }).run('hello');
    for await (const event of run.events) if (event.type === 'text') break;
    return {
      cancel() {
        run.cancel();
        return run.outcome;
      },
    };
  },
};

const aiSdk: Contestant = {
  name: 'ai (streamText)',
  async start({ url }) {
    const controller = new AbortController();
    const model = createOpenAI({ baseURL: url, apiKey: 'none' }).chat('m');
    const result = streamText({ model, prompt: 'hello', abortSignal: controller.signal, onError: () => {} });
    const reader = result.stream.getReader();
    for (let part = await reader.read(); part.value?.type !== 'text-delta'; part = await reader.read());
    return {
      async cancel() {
        controller.abort();
        for (let part = await reader.read(); !part.done; part = await reader.read());
      },
    };
  },
};

async function piAgent(provider: LoopbackProvider): Promise<Contestant | undefined> {
  const create = await loadPiAgent(provider.url);
  if (typeof create === 'string') {
    console.error(`pi is left out: ${create}`);
    return undefined;
  }
  return {
    name: 'pi (agent loop)',
    async start() {
      const agent = create();
      const talking = Promise.withResolvers<void>();
      agent.subscribe(({ assistantMessageEvent }) => {
        if (assistantMessageEvent?.type === 'text_delta') talking.resolve();
      });
      const prompt = agent.prompt('hello');
      await Promise.race([talking.promise, prompt]);
      return {
        cancel() {
          agent.abort();
          return prompt;
        },
      };
    },
  };
}

const provider = await startLoopbackProvider({ script: () => ({ parts: [{ text: ['Hello ', { stall: true }] }] }) });
const pi = await piAgent(provider);
const contestants = [bare, ours, aiSdk, pi].filter((one) => one !== undefined);
const settled = new Map(contestants.map((one) => [one, [] as number[]]));
const closed = new Map(contestants.map((one) => [one, [] as number[]]));

for (let round = -WARM_UP; round < RUNS * ROUNDS; round++) {
  // In turns, so that noise hits all of them alike.
  for (const contestant of contestants) {
    const index = provider.requests.length;
    const { cancel } = await contestant.start(provider);
    const request = provider.requests[index]!;
    await request.waitForStall();
    const start = performance.now();
    const ended = cancel().then(() => performance.now() - start);
    const [settledAfter] = await Promise.all([ended, request.waitForClose()]);
    if (round < 0) continue;
    settled.get(contestant)!.push(settledAfter);
    closed.get(contestant)!.push(request.closedAt! - start);
  }
}
await provider.close();

/** The median, over all runs, of each run's percentile. */
function ofRuns(samples: readonly number[], share: number): number {
  const runs = Array.from({ length: RUNS }, (_, run) => samples.slice(run * ROUNDS, (run + 1) * ROUNDS));
  return percentile(
    runs.map((run) => percentile(run, share)),
    0.5,
  );
}

for (const [what, samples] of [
  ['settled', settled],
  ['connection closed', closed],
] as const) {
  const p = (one: Contestant, share: number): number => ofRuns(samples.get(one)!, share);
  for (const [peer, atMost] of [
    [bare, 2],
    [aiSdk, 1],
    [pi, 1.05],
  ] as const) {
    if (peer === undefined) continue;
    report({
      name: `cancel mid-text → ${what}, p50 of ${RUNS} runs of ${ROUNDS} beside ${peer.name} (ms)`,
      ours: p(ours, 0.5),
      bare: p(peer, 0.5),
      goal: { atMost },
      more: { p95: p(ours, 0.95).toFixed(2), peerP95: p(peer, 0.95).toFixed(2) },
    });
  }
}

// A cancel in the middle of a reply: how long until the run has settled, and until the server sees the connection close.
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgent } from '@whoa/core';
import { streamText } from 'ai';
import { percentile, report } from './measure/measure.ts';
import { loadPiAgent } from './peers/pi-agent.ts';

const ROUNDS = 200;
const WARM_UP = 10;

/** Streams until the reply is under way, then calls `cancel`, which resolves when everything has settled. */
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
const contestants = [bare, ours, aiSdk, await piAgent(provider)].filter((one) => one !== undefined);
const settled = new Map(contestants.map((one) => [one, [] as number[]]));
const closed = new Map(contestants.map((one) => [one, [] as number[]]));

for (let round = -WARM_UP; round < ROUNDS; round++) {
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

for (const [what, samples, goal] of [
  ['settled', settled, 2],
  ['connection closed', closed, 2],
] as const) {
  const p = (one: Contestant, share: number) => percentile(samples.get(one)!, share);
  const p99 = p(ours, 0.99).toFixed(2);
  report({
    name: `cancel mid-text → ${what}, p50 of ${ROUNDS} beside a bare fetch (ms)`,
    ours: p(ours, 0.5),
    bare: p(bare, 0.5),
    goal: { atMost: goal },
    more: { p99 },
  });
  for (const peer of contestants.slice(2)) {
    const more = { p99, peerP99: p(peer, 0.99).toFixed(2) };
    report({
      name: `cancel mid-text → ${what}, p50 beside ${peer.name} (ms)`,
      ours: p(ours, 0.5),
      bare: p(peer, 0.5),
      goal: { atMost: 1 },
      more,
    });
  }
}

import { createTaskStore } from '@whoa/tasks';
import { percentile, report } from '../measure/measure.ts';
import type { BenchCase } from '../stores/bare.ts';
import { BENCH, Server, startChild } from './process.ts';

const READERS = 5;
const WORDS = 300;
const WARM_UP = 30;
/** How long a word may take from the worker to the reader. */
const LIMITS_MS = { p50: 60, p95: 200 };

/**
 * From a worker that has a word to a reader of the server that has it: compared with a bare server and what the store
 * publishes.
 */
export async function measureText({ name, config }: BenchCase): Promise<void> {
  await using store = createTaskStore(config);
  await using ours = await Server.start('ours', config);
  await using bare = await Server.start('bare', config);
  const worker = await startChild('speaker', [JSON.stringify(config)]);
  const numbers = Array.from({ length: READERS }, (_, index) => index);
  const measureOurs = async (): Promise<number[]> => {
    const receipt = await store.create({ tenant: BENCH.tenant, agent: 'speaker', input: `${WORDS}` });
    if (receipt.result !== 'created') throw new Error(receipt.result);
    return readWords(`${ours.url}/v1/tasks/${receipt.task.id}/events`);
  };
  const samples = (await Promise.all(numbers.map(measureOurs))).flat();
  const names = numbers.map((number) => `words-${number}`);
  const opened = Promise.withResolvers<void>();
  let open = 0;
  const reading = names.map((one) =>
    readWords(`${bare.url}/published/${one}`, () => ++open === READERS && opened.resolve()),
  );
  await opened.promise;
  worker.send({ names, words: WORDS });
  const bareSamples = (await Promise.all(reading)).flat();
  worker.kill();
  for (const [title, share] of [
    ['p50', 0.5],
    ['p95', 0.95],
  ] as const) {
    report({
      name: `server text ${name} ${title}, from the worker to a reader, beside ${LIMITS_MS[title]} ms`,
      ours: percentile(samples, share),
      bare: LIMITS_MS[title],
      goal: { atMost: 1 },
      more: {
        unit: 'ms',
        samples: samples.length,
        barePublishMs: Number(percentile(bareSamples, share).toPrecision(3)),
      },
    });
  }
}

/** How old each word is when it arrives. */
async function readWords(url: string, onOpen: () => unknown = () => {}): Promise<number[]> {
  const controller = new AbortController();
  const response = await fetch(url, { headers: BENCH.headers, signal: controller.signal });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const decoder = new TextDecoder();
  const ages: number[] = [];
  let left = '';
  for await (const chunk of response.body!) {
    const now = process.hrtime.bigint();
    const text = left + decoder.decode(chunk as Uint8Array, { stream: true });
    const events = text.split('\n\n');
    left = events.pop()!;
    for (const event of events) {
      if (event.startsWith('event: open')) onOpen();
      const isWords = event.startsWith('data:') || event.includes('"type":"text"');
      for (const [said] of isWords ? event.matchAll(/\d{12,}(?= )/g) : []) ages.push(Number(now - BigInt(said)) / 1e6);
    }
    if (ages.length >= WORDS) break;
  }
  controller.abort();
  return ages.slice(WARM_UP);
}

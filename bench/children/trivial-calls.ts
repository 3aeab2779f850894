// One side of the trivial calls of `token.ts`, in a separate process: each side pays for its own garbage, when it falls
// due. A forced collection before each run would throw compiled code away and measure that.
import { CancellationToken, createRuntime, defineTool } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';
import { cpuMs } from '../measure/cpu.ts';

const CALLS = 10_000;
const CONCURRENCY = 16;
const anything: InputSchema = { '~standard': { version: 1, vendor: 'bench', validate: (value) => ({ value }) } };

const WORK: Record<string, () => Promise<string>> = {
  'an async function': () => Promise.resolve('ok'),
  'one turn of the event loop': () => new Promise((resolve) => setImmediate(() => resolve('ok'))),
  'a timer of 1 ms': () => new Promise((resolve) => setTimeout(() => resolve('ok'), 1)),
};

function ours(work: () => Promise<string>): () => Promise<unknown> {
  const tool = defineTool({ name: 'trivial', description: '', effects: 'read', inputSchema: anything, execute: work });
  const runtime = createRuntime({ concurrency: CONCURRENCY, tools: [tool] });
  const calls = Array.from({ length: CALLS }, (_, i) => ({ id: `${i}`, tool: 'trivial', input: {} }));
  const token = new CancellationToken();
  return () => runtime.execute(calls, { token });
}

/** The least a bounded loop can be: workers that take the next call and keep its result. */
function bare(work: () => Promise<string>): () => Promise<unknown> {
  return () => {
    const results: string[] = [];
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < CALLS; i = next++) results[i] = await work();
    };
    return Promise.all(Array.from({ length: CONCURRENCY }, worker));
  };
}

const [side, name = ''] = process.argv.slice(2);
const run = (side === 'ours' ? ours : bare)(WORK[name]!);
async function measure(): Promise<void> {
  const start = cpuMs();
  await run();
  process.send!(((cpuMs() - start) * 1000) / CALLS);
}
process.on('message', () => void measure());

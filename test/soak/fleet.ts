// Two servers and three workers, started as an operator would, on one store.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { BIN, createHome } from '../command/terminal.ts';

const TOKEN = 'a-token-for-the-soak-of-the-fleet';

/** A model that streams, calls a tool twice and ends; it keeps nothing of what it was asked. */
const config = (store: object): string => `
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, defineConfig, defineTool } from 'whoa';

const nap = defineTool({
  name: 'nap', description: 'Sleeps.', effects: 'read', replay: 'safe',
  inputSchema: { '~standard': { version: 1, vendor: 'soak', validate: (value) => ({ value }) } },
  inputJsonSchema: { type: 'object' },
  async execute({ ms }, { signal }) {
    await wait(ms, undefined, { signal });
    return { content: 'rested', details: { ms, notes: 'z'.repeat(500) } };
  },
});

const model = {
  name: 'soak',
  async *stream({ messages }, { signal }) {
    const calls = messages.filter(({ role }) => role === 'tool').length;
    yield { type: 'usage', inputTokens: 10 };
    for (let i = 0; i < 20; i++) {
      await wait(5, undefined, { signal });
      yield { type: 'text', text: 'word ' };
    }
    if (calls < 2) {
      const [callId, input] = ['call-' + calls, { ms: 20 + 400 * Math.random() }];
      yield { type: 'call-start', callId, tool: 'nap' };
      yield { type: 'call-arguments', callId, text: JSON.stringify(input) };
      yield { type: 'call-end', callId, tool: 'nap', input };
    }
    yield { type: 'usage', outputTokens: 20 };
    yield { type: 'finish', stopReason: 'stop' };
  },
};

export default defineConfig({
  store: ${JSON.stringify(store)},
  agents: { sleeper: createAgent({ name: 'sleeper', model, tools: [nap] }) },
});
`;

interface FleetProcess {
  readonly name: string;
  readonly pid: number;
}

/** A running fleet. */
export interface Fleet extends AsyncDisposable {
  readonly urls: readonly string[];
  readonly token: string;
  readonly processes: readonly FleetProcess[];
  /** Processes that ended unasked, and their last output. */
  readonly crashes: readonly string[];
}

export async function startFleet(
  store: object,
  { servers, workers }: { servers: number; workers: number },
): Promise<Fleet> {
  const home = createHome({ 'config/whoa/whoa.config.ts': config(store) });
  const children: { readonly child: ChildProcess; readonly name: string }[] = [];
  const crashes: string[] = [];
  let isEnding = false;
  const start = async (name: string, args: readonly string[], wanted: string): Promise<Record<string, unknown>> => {
    const [file = '', ...rest] = BIN;
    const env = { ...home.env, WHOA_TOKEN: TOKEN };
    const child = spawn(file, [...rest, ...args, '--json'], {
      cwd: home.folder.path,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push({ child, name });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-2_000)));
    child.once('exit', (code, signal) => {
      if (!isEnding) crashes.push(`${name} ended (${code ?? signal}): ${said}`);
    });
    const ready = Promise.withResolvers<Record<string, unknown>>();
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as Record<string, unknown>;
      if (line['type'] === wanted) ready.resolve(line);
    });
    child.once('exit', () => ready.reject(new Error(`${name} did not start: ${said}`)));
    return ready.promise;
  };
  const urls: string[] = [];
  for (let i = 0; i < servers; i++) {
    urls.push((await start(`server ${i}`, ['serve', '--port', '0'], 'listening'))['url'] as string);
  }
  for (let i = 0; i < workers; i++) await start(`worker ${i}`, ['worker', '--concurrency', '32'], 'working');
  return {
    urls,
    token: TOKEN,
    crashes,
    processes: children.map(({ child, name }) => ({ name, pid: child.pid! })),
    async [Symbol.asyncDispose]() {
      isEnding = true;
      await Promise.all(
        children.map(async ({ child }) => {
          if (child.exitCode !== null || child.signalCode !== null) return;
          const ended = once(child, 'exit');
          child.kill('SIGTERM');
          await ended;
        }),
      );
      home[Symbol.dispose]();
    },
  };
}

// A rolling restart of the processes of deploy/: every server and every worker is replaced, behind a proxy that never
// sends a request twice, while clients send requests and read streams. No request fails, and nothing is lost.
import { createHash } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { createTaskClient, type TaskClient } from '@whoa/server/task-client';
import { expect, onTestFinished, test } from 'vitest';
import { type RunningCommand, startCommand } from '../command/process.ts';
import { createHome, type Home } from '../command/terminal.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { freePort } from '../servers/free-port.ts';
import { missingHaproxy, startHaproxy } from './haproxy.ts';

const STREAMS = Number(process.env['ROLLING_STREAMS'] ?? 500);
const WORD_MS = 500;
const WORDS = Array.from({ length: 20 }, (_, i) => `word${i}`);
const REQUESTS_PER_SECOND = Number(process.env['ROLLING_REQUESTS'] ?? 200);
/** The drain of deploy/whoa.config.ts. A machine that is too busy for health checks needs a longer one. */
const DRAIN_SECONDS = process.env['ROLLING_DRAIN'] ?? '10';
/** A busy machine may be silent for longer than a client would wait. */
const IDLE_MS = 300_000;
/** One principal may send 50 requests per second and open 100 streams. */
const TENANTS = 20;

const toToken = (tenant: number): string => `a-token-for-the-rolling-restart-${tenant}`;
const RIGHTS = ['read', 'start', 'cancel'];
const TOKENS = Array.from({ length: TENANTS }, (_, i) => {
  const sha256 = createHash('sha256').update(toToken(i)).digest('hex');
  return { sha256, tenant: `tenant-${i}`, name: 'client', rights: RIGHTS };
});

function openHome(storeUrl: string): Home {
  const home = createHome({
    'tokens.json': JSON.stringify(TOKENS),
    'config/whoa/whoa.config.ts': `
      import { createAgent, defineConfig } from 'whoa';
      import { createScriptedModel } from '@whoa/core/testing';
      const agent = (name, reply, wordMs) => createAgent({ name, model: createScriptedModel([[reply]], { wordMs }) });
      export default defineConfig({
        store: { backend: 'postgres', url: '${storeUrl}', connectTimeoutMs: 60_000, statementTimeoutMs: 60_000 },
        stopMode: { drainMs: 10_000, abortMs: 2_000 },
        agents: { writer: agent('writer', '${WORDS.join(' ')}', ${WORD_MS}), quick: agent('quick', 'done', 0) },
      });
    `,
  });
  onTestFinished(() => home[Symbol.dispose]());
  return home;
}

class Traffic {
  readonly #clients: readonly TaskClient[];
  readonly #over = new AbortController();
  readonly counts = { requests: 0, streams: 0, words: 0, reopened: 0 };
  /** Failures that clients saw. */
  readonly faults: string[] = [];
  readonly #known = new Map<TaskClient, string>();
  readonly #created: { readonly client: TaskClient; readonly id: string }[] = [];

  constructor(url: string) {
    this.#clients = TOKENS.map((_, i) => createTaskClient({ url, token: toToken(i) }));
  }

  async run(): Promise<void> {
    await Promise.all([this.#request(), ...Array.from({ length: STREAMS }, (_, i) => this.#readStreams(i))]);
  }

  end(): void {
    this.#over.abort();
  }

  /** Returns how many of the tasks that were acknowledged did not end well. */
  async findLost(): Promise<string[]> {
    const lost: string[] = [];
    for (const { client, id } of this.#created) {
      for await (const seen of client.follow(id))
        if (seen.type === 'end' && seen.task.status !== 'success') lost.push(`${id} ${seen.task.status}`);
    }
    return lost;
  }

  /** Every second of 200: one in four creates a task, the others read one. */
  async #request(): Promise<void> {
    const sent = new Set<Promise<void>>();
    const startedAt = performance.now();
    for (let i = 0; !this.#over.signal.aborted; await wait(1_000 / REQUESTS_PER_SECOND)) {
      // All that are due, if this process was late.
      for (; i < ((performance.now() - startedAt) / 1_000) * REQUESTS_PER_SECOND; i++) {
        const one = this.#ask(this.#clients[i % TENANTS]!, i).finally(() => sent.delete(one));
        sent.add(one);
      }
    }
    await Promise.all(sent);
  }

  async #ask(client: TaskClient, i: number): Promise<void> {
    try {
      const known = this.#known.get(client);
      if (i % 4 === 0 || known === undefined) {
        const receipt = await client.create({ agent: 'quick', input: `hello ${i}` });
        const { id } = (receipt as { task: { id: string } }).task;
        this.#created.push({ client, id });
        this.#known.set(client, id);
      } else await client.get(known);
      this.counts.requests++;
    } catch (error) {
      this.faults.push(`request ${i}: ${String(error)}`);
    }
  }

  async #readStreams(index: number): Promise<void> {
    const client = this.#clients[index % TENANTS]!;
    while (!this.#over.signal.aborted) {
      try {
        await this.#readStream(client);
        this.counts.streams++;
      } catch (error) {
        this.faults.push(`stream of ${index}: ${String(error)}`);
      }
    }
  }

  async #readStream(client: TaskClient): Promise<void> {
    const receipt = await client.create({ agent: 'writer', input: 'Write.' });
    const { id } = (receipt as { task: { id: string } }).task;
    let opened = 0;
    let position = 0;
    const seen: string[] = [];
    // A stream that is cut is opened again where it was. An opening that fails is a fault.
    const onDisconnect = (error: unknown): void => this.#lost(error);
    const options = { onOpen: () => opened++, onDisconnect, idleTimeoutMs: IDLE_MS };
    for await (const one of client.follow(id, options)) {
      if (one.type === 'end') {
        if (one.task.status !== 'success') throw new Error(`${id} ended with ${one.task.status}`);
        continue;
      }
      if (one.type === 'taken-back' || one.position < position)
        throw new Error(`${id}: ${one.type}, position ${one.position} after ${position}`);
      position = one.position;
      seen.push(JSON.stringify(one.event));
      this.counts.words++;
    }
    this.counts.reopened += opened - 1;
    const text = seen.join(' ');
    const missing = WORDS.filter((word) => !text.includes(word));
    if (missing.length > 0) throw new Error(`${id} has lost ${missing.join(', ')}`);
  }

  #lost(error: unknown): void {
    const isCut = error instanceof TypeError;
    if (!isCut || /fetch failed/.test(String(error))) this.faults.push(`reopening: ${String(error)}`);
  }
}

test.skipIf(missingHaproxy !== undefined)(
  `2 servers and 3 workers are replaced under ${REQUESTS_PER_SECOND} requests per second and ${STREAMS} streams: 0 refused, 0 lost`,
  async () => {
    await using postgres = await borrowPostgres();
    const ports = [await freePort(), await freePort(), await freePort()] as const;
    await using proxy = await startHaproxy(ports);
    const home = openHome(postgres.url);
    const startServer = async (port: number): Promise<RunningCommand> => {
      const server = startCommand(home, [
        'serve',
        '--port',
        `${port}`,
        '--token-file',
        'tokens.json',
        '--drain',
        DRAIN_SECONDS,
      ]);
      await server.waitFor({ type: 'listening' });
      await proxy.waitFor(port, 'UP');
      return server;
    };
    const startWorker = async (): Promise<RunningCommand> => {
      const worker = startCommand(home, ['worker', '--concurrency', '400', '--watchdog', '60']);
      await worker.waitFor({ type: 'working' });
      return worker;
    };
    const end = async (old: RunningCommand): Promise<void> => {
      old.kill('SIGTERM');
      expect(await old.closed, old.errors()).toEqual([0, null]);
    };
    const [spare, ...taken] = ports;
    const servers = await Promise.all(taken.map(startServer));
    const workers = await Promise.all([startWorker(), startWorker(), startWorker()]);
    const traffic = new Traffic(proxy.url);
    const running = traffic.run();
    const startedAt = performance.now();
    // As with maxSurge 1 and maxUnavailable 0: the next one is ready before an old one is ended.
    let free: number = spare;
    for (const [i, old] of servers.entries()) {
      servers[i] = await startServer(free);
      await end(old);
      free = taken[i]!;
    }
    for (const [i, old] of workers.entries()) {
      workers[i] = await startWorker();
      await end(old);
    }
    traffic.end();
    const wanted = ((performance.now() - startedAt) / 1_000) * REQUESTS_PER_SECOND;
    await running;
    const lost = await traffic.findLost();
    const counted = Object.values(await proxy.read()).map(({ failures }) => failures);
    console.log(
      JSON.stringify({
        ...traffic.counts,
        wanted: Math.round(wanted),
        faults: traffic.faults.length,
        lost: lost.length,
        counted,
      }),
    );
    expect(traffic.faults.slice(0, 20)).toEqual([]);
    expect(lost).toEqual([]);
    expect(counted).toEqual([0, 0, 0]);
    // A machine that is too busy to send requests proves nothing.
    expect(traffic.counts.requests).toBeGreaterThan(wanted / 2);
    await Promise.all([...servers, ...workers].map(end));
  },
);

test.runIf(missingHaproxy !== undefined)(`a rolling restart is not tried: ${missingHaproxy}`, () => {});

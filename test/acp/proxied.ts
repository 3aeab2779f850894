// Both sides of a proxy in memory: the test is the editor and the agent.
import { PassThrough } from 'node:stream';
import { type AcpProxy, type ProxiedAgent, type ProxyEvent, proxyAcp } from '@whoa/acp/proxy';
import { createVirtualWorld, flushMicrotasks } from '@whoa/core/testing';

export interface Line {
  readonly id?: string | number | null;
  readonly method?: string;
  readonly params?: { readonly update?: Record<string, unknown>; readonly sessionId?: string } & Record<
    string,
    unknown
  >;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** An agent process that the test controls. */
class FakeAgent implements ProxiedAgent {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly #exit = Promise.withResolvers<{ code: number | null }>();
  readonly exited = this.#exit.promise;
  /** Processes that were asked to end, in order. */
  readonly endings: unknown[] = [];
  isEnded = false;
  #clock = 0;
  readonly #read = collect(this.stdin);

  now() {
    return { pid: 1, startTime: ++this.#clock };
  }

  /** What the proof of an end waits for. */
  proof: Promise<void> = Promise.resolve();

  async endSince(
    moment: unknown,
    { except, onDead }: { readonly except: readonly unknown[]; readonly onDead?: () => void },
  ) {
    this.endings.push({ since: moment, except });
    onDead?.();
    await this.proof;
    const shared = except.length === 0 ? {} : { shared: except.length };
    return { verified: 'tags' as const, ended: 2, survivors: 0, ...shared };
  }

  end() {
    this.isEnded = true;
    this.exit(null);
    return Promise.resolve({ verified: 'tags' as const, ended: 1, survivors: 0 });
  }

  exit(code: number | null): void {
    this.stdout.end();
    this.#exit.resolve({ code });
  }

  /** The lines that it received since the last call. */
  received(): Line[] {
    return this.#read().map((line) => JSON.parse(line) as Line);
  }

  receivedLines(): string[] {
    return this.#read();
  }

  send(...messages: (object | string)[]): Promise<void> {
    return write(this.stdout, messages);
  }

  update(sessionId: string, update: object): Promise<void> {
    return this.send({ method: 'session/update', params: { sessionId, update } });
  }
}

function collect(stream: PassThrough): () => string[] {
  let text = '';
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
  return () => {
    const lines = text.split('\n');
    text = lines.pop() ?? '';
    return lines;
  };
}

function write(stream: PassThrough, messages: readonly (object | string)[]): Promise<void> {
  for (const one of messages)
    stream.write(`${typeof one === 'string' ? one : JSON.stringify({ jsonrpc: '2.0', ...one })}\n`);
  return flushMicrotasks();
}

export interface ProxyHarness {
  readonly proxy: AcpProxy;
  readonly events: ProxyEvent[];
  /** Every process that was started. */
  readonly agents: FakeAgent[];
  readonly agent: FakeAgent;
  readonly clock: ReturnType<typeof createVirtualWorld>['clock'];
  readonly output: PassThrough;
  readonly input: PassThrough;
  send(...messages: (object | string)[]): Promise<void>;
  /** The messages that the editor received since the last call. */
  received(): Line[];
  receivedLines(): string[];
}

/** A proxy with nothing sent yet. */
export async function openProxy(): Promise<ProxyHarness> {
  const input = new PassThrough();
  const output = new PassThrough();
  const { clock } = createVirtualWorld();
  const agents: FakeAgent[] = [];
  const events: ProxyEvent[] = [];
  const start = (): Promise<ProxiedAgent> => {
    agents.push(new FakeAgent());
    return Promise.resolve(agents.at(-1)!);
  };
  const proxy = proxyAcp({ start, input, output, clock, onEvent: (event) => events.push(event), waitMs: 1_000 });
  const read = collect(output);
  await flushMicrotasks();
  return {
    proxy,
    events,
    agents,
    clock,
    input,
    output,
    get agent() {
      return agents.at(-1)!;
    },
    send: (...messages) => write(input, messages),
    received: () => read().map((line) => JSON.parse(line) as Line),
    receivedLines: read,
  };
}

/** Greets and opens a session with the id `s`. */
export async function initialize(
  harness: ProxyHarness,
  { version = 1, ...capabilities }: { version?: number } & Record<string, unknown> = {},
): Promise<void> {
  await harness.send({ id: 1, method: 'initialize', params: { protocolVersion: version } });
  await harness.agent.send({ id: 1, result: { protocolVersion: version, agentCapabilities: capabilities } });
  await openSession(harness, 's');
  harness.received();
  harness.agent.received();
}

export async function openSession(harness: ProxyHarness, sessionId: string): Promise<void> {
  await harness.send({ id: `new-${sessionId}`, method: 'session/new', params: { cwd: '/w', mcpServers: [] } });
  await harness.agent.send({ id: `new-${sessionId}`, result: { sessionId } });
  harness.received();
  harness.agent.received();
}

export const prompt = (id: number, sessionId = 's'): object => ({
  id,
  method: 'session/prompt',
  params: { sessionId, prompt: [{ type: 'text', text: 'go' }] },
});
export const cancel = (sessionId = 's'): object => ({ method: 'session/cancel', params: { sessionId } });
export const chunk = (text: string): object => ({
  sessionUpdate: 'agent_message_chunk',
  content: { type: 'text', text },
});

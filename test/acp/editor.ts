// Acts like an editor: starts the agent as a process and uses the official client.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { PassThrough, Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import * as acp2 from '@agentclientprotocol/sdk/experimental/v2';

const AGENT = join(import.meta.dirname, 'agent.ts');

export interface RawMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly result?: { readonly stopReason?: string } & Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
  readonly params?: { readonly update?: Record<string, unknown> } & Record<string, unknown>;
}

/** An agent in a separate process. */
export interface AgentProcess extends AsyncDisposable {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly stream: acp.Stream;
  /** Every line it has written so far; throws on a line that is not a message. */
  readonly messages: readonly RawMessage[];
  readonly stderr: () => string;
  /** Resolves when such a message has been written. */
  readonly waitFor: (matches: (message: RawMessage) => boolean) => Promise<RawMessage>;
  readonly exited: Promise<void>;
}

/** Starts the agent the way Zed does: in a separate session, so that its group can be killed. */
export function startAgent(env: Record<string, string> = {}): AgentProcess {
  const args = ['--conditions=@whoa/source', '--disable-warning=ExperimentalWarning', AGENT];
  const child = spawn(process.execPath, args, {
    detached: true,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const watch = watchMessages(child.stdout);
  let stderrTail = '';
  child.stderr.on('data', (text: Buffer) => (stderrTail += text.toString()));
  child.stdin.on('error', () => {});
  const exited = once(child, 'exit').then(() => {});
  return {
    child,
    ...watch,
    stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(watch.copy) as ReadableStream<Uint8Array>),
    stderr: () => stderrTail,
    exited,
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
      if (child.exitCode === null && child.signalCode === null) await exited;
      clearTimeout(late);
    },
  };
}

/** Collects messages while another reader consumes them. */
export function watchMessages(
  output: Readable,
): Pick<AgentProcess, 'messages' | 'waitFor'> & { readonly copy: PassThrough } {
  const messages: RawMessage[] = [];
  const waiting = new Set<{ matches: (message: RawMessage) => boolean; resolve: (message: RawMessage) => void }>();
  const copy = new PassThrough();
  let rest = '';
  output.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const message = JSON.parse(line) as RawMessage;
      messages.push(message);
      for (const waiter of waiting) {
        if (!waiter.matches(message)) continue;
        waiting.delete(waiter);
        waiter.resolve(message);
      }
    }
    copy.write(chunk);
  });
  output.once('end', () => copy.end());
  return {
    messages,
    copy,
    waitFor(matches) {
      const found = messages.find(matches);
      if (found !== undefined) return Promise.resolve(found);
      return new Promise((resolve) => waiting.add({ matches, resolve }));
    },
  };
}

export type OnPermission = (signal: AbortSignal) => Promise<acp.RequestPermissionResponse>;

/** A person who never answers. */
export const mute: OnPermission = () => new Promise(() => {});
export const choose =
  (optionId: string): OnPermission =>
  () =>
    Promise.resolve({ outcome: { outcome: 'selected', optionId } });

/** A v1 client, connected and greeted, with a session. */
export async function openEditor(
  stream: acp.Stream,
  { onPermission = mute, files }: { onPermission?: OnPermission; files?: Map<string, string> } = {},
): Promise<{ agent: acp.ClientContext; sessionId: string; connection: acp.ClientConnection }> {
  const connection = acp
    .client({ name: 'test-editor' })
    .onNotification(acp.methods.client.session.update, () => {})
    .onRequest(acp.methods.client.session.requestPermission, ({ signal }) => onPermission(signal))
    .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => ({ content: files?.get(params.path) ?? '' }))
    .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
      files?.set(params.path, params.content);
      return {};
    })
    .connect(stream);
  const { agent } = connection;
  const hasFiles = files !== undefined;
  await agent.request(acp.methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: hasFiles, writeTextFile: hasFiles } },
  });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
  return { agent, sessionId, connection };
}

/** A v2 client, connected and greeted, with a session. */
export async function openEditorV2(
  stream: acp2.Stream,
): Promise<{ agent: acp2.ClientContext; sessionId: string; connection: acp2.ClientConnection }> {
  const connection = acp2
    .client({ name: 'test-editor' })
    .onNotification(acp2.methods.client.session.update, () => {})
    .onRequest(acp2.methods.client.session.requestPermission, () => new Promise(() => {}))
    .connect(stream);
  const { agent } = connection;
  await agent.request(acp2.methods.agent.initialize, {
    protocolVersion: 2,
    info: { name: 'test-editor', version: '1' },
    capabilities: {},
  });
  const { sessionId } = await agent.request(acp2.methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
  return { agent, sessionId, connection };
}

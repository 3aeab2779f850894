// An editor: starts the command in a separate process group, as Zed does, and uses the official client.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { onTestFinished } from 'vitest';
import { BIN, type Home } from './terminal.ts';

/** The editor's answers to requests for files. */
export interface EditorFiles {
  readonly read?: (
    path: string,
    signal: AbortSignal,
    range: { readonly line: number | undefined; readonly limit: number | undefined },
  ) => string | Promise<string>;
  readonly write?: (path: string, content: string, signal: AbortSignal) => void | Promise<void>;
  /** Answers questions with the id of an option. Without it, only protected files need approval. */
  readonly permit?: (question: acp.RequestPermissionRequest) => string | Promise<string>;
  /** More arguments of the command. */
  readonly args?: readonly string[];
}

interface Editor {
  readonly child: ChildProcess;
  /** The updates so far. */
  readonly shown: readonly acp.SessionUpdate[];
  readonly prompt: (text: string) => Promise<acp.PromptResponse>;
  readonly cancel: () => Promise<void>;
  /** Closes its end, as an editor does whose window is closed. */
  readonly close: () => Promise<void>;
}

/**
 * An editor with a session, which offers the files it has answers for. The model follows the home's `script.json`.
 * `onEnd` gets the cleanup; by default it runs when the test has finished.
 */
export async function openEditor(
  { folder, env }: Home,
  { read, write, permit, args: more = permit === undefined ? ['--yes'] : [] }: EditorFiles = {},
  onEnd: (cleanup: () => Promise<void>) => void = onTestFinished,
): Promise<Editor> {
  const [file, ...args] = [...BIN, 'acp', ...more, '--sandbox', 'none', '--model', 'scripted:script.json'];
  const child = spawn(file, args, { cwd: folder.path, env, detached: true, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  onEnd(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  child.stdin.on('error', () => {});
  const shown: acp.SessionUpdate[] = [];
  const output = Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>;
  const { agent } = acp
    .client({ name: 'test-editor' })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      shown.push(params.update);
    })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => ({
      outcome: { outcome: 'selected', optionId: (await permit?.(params)) ?? 'reject' },
    }))
    .onRequest(acp.methods.client.fs.readTextFile, async ({ params, signal }) => ({
      content: await read!(params.path, signal, { line: params.line ?? undefined, limit: params.limit ?? undefined }),
    }))
    .onRequest(acp.methods.client.fs.writeTextFile, async ({ params, signal }) => {
      await write!(params.path, params.content, signal);
      return {};
    })
    .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), output));
  await agent.request(acp.methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: read !== undefined, writeTextFile: write !== undefined } },
  });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: folder.path, mcpServers: [] });
  return {
    child,
    shown,
    prompt: (text) => agent.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] }),
    cancel: () => agent.notify(acp.methods.agent.session.cancel, { sessionId }),
    async close() {
      child.stdin.end();
      await exited;
    },
  };
}

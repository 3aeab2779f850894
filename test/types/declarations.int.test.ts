// A library built on Whoa exports what our functions return, and its compiler writes declarations for it. A type that cannot be
// named from outside would fail there.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../docs/pages.ts';

const LIBRARY = `
import { createCallRecords, fromAiSdk, fromAiSdkTools, guardAiSdkTools, createStoppableTurn } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { createAgentTool, CancellationToken, createAgent, createConversations, createRuntime, defineTool, guard } from '@whoa/core';
import { createLateResults, shield } from '@whoa/core/embed';
import { createApprovals } from '@whoa/core/approval';
import { createRecorder, createVirtualWorld, createScriptedModel } from '@whoa/core/testing';
import { createBackground, createStoreConversations, createRunner, createTaskStore, createTaskApprovals } from '@whoa/tasks';
import { createCancellationRegistry, createCancelMessage, createEventChannel } from '@whoa/tasks/compat';
import { createBackgroundTools, createBashTool, createBackgroundProcesses, createContainment, createRoot, detectContainments, createFileTools, createMcpTools } from '@whoa/tools';
import { listResources, createToolContract } from '@whoa/tools/testing';
import { createBullmqEngine } from '@whoa/bullmq';
import { createFileSessions, serveAcp } from '@whoa/acp';
import { createAccess, createAgUiHandler, createChatHandler, createLogin, createTaskApi, createTokenAuthenticator, listen } from '@whoa/server';
import { createTaskClient } from '@whoa/server/task-client';
import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
import { createWebhooks } from '@whoa/server/webhooks';
import { tool } from 'ai';
import { Queue } from 'bullmq';
import { defineConfig } from 'whoa';
import { z } from 'zod';

export const token = new CancellationToken();
export const receipt = token.cancel();
export const shielded = shield(token, { timeoutMs: 1_000 });
export const lateResults = createLateResults();
export const guarded = guard(() => 1, { name: 'one', token });
export const book = defineTool({ name: 'book', description: 'Books', inputSchema: z.object({ at: z.string() }), execute: ({ at }) => at });
export const model = createScriptedModel([['Hello']]);
export const approve = createApprovals({ ask: async () => ({ decision: 'yes' }), alwaysUntil: 'ever' });
export const agent = createAgent({ name: 'assistant', model, tools: [book], approve });
export const run = agent.run('Hello');
export const outcome = await run.outcome;
export const sub = createAgentTool(agent, { name: 'sub', description: 'A sub-agent' });
export const runtime = createRuntime({ tools: [book] });
export const conversations = createConversations({ agent });
export const reply = await conversations.processMessage('one', 'Hello');
export const world = createVirtualWorld();
export const recorder = createRecorder();
export const plain = { add: tool({ inputSchema: z.object({ a: z.number() }), execute: ({ a }: { a: number }) => a }) };
export const calls = createCallRecords();
export const ours = fromAiSdkTools(plain);
export const safe = guardAiSdkTools(plain, { token, calls });
export const turn = createStoppableTurn({ token, history: [{ role: 'user', content: 'Hello' }], tools: plain, calls });
export const settled = await turn.settled;
export const wrap = fromAiSdk;
export const provider = startLoopbackProvider({ script: [] });
export const store = createTaskStore('memory');
export const runner = createRunner({ store, agents: { agent } });
export const started = runner.start({ tenant: 'acme', agent: 'agent', input: 'Hello' });
export const stored = createStoreConversations({ agent, store, tenant: 'acme' });
export const storedReply = stored.processMessage('one', 'Hello');
export const engine = createBullmqEngine({ store, queue: new Queue('agents', { connection: {} }), agents: ['agent'] });
export const background = createBackground();
export const storedApprovals = createTaskApprovals();
export const registry = createCancellationRegistry({ store, tenant: 'acme' });
export const registered = registry.register();
export const channel = createEventChannel();
export const message = createCancelMessage({ tenant: 'acme', all: true });
export const containment = createContainment();
export const techniques = detectContainments();
export const started_ = containment.start({ argv: ['true'], env: {} });
export const processes = createBackgroundProcesses({ containment });
export const listed = processes.list();
export const shell = [createBashTool(), ...createBackgroundTools(processes), ...createFileTools({ root: '.' })];
export const root = createRoot('.');
export const located = root.locate('file');
export const mcp = createMcpTools({ name: 'files', transport: { type: 'stdio', command: 'server' } });
export const inventory = listResources();
export const cases = createToolContract({ create: () => ({ tool: book, input: {}, slow: { input: {} } }) });
export const sessions = createFileSessions({ folder: '.' });
export const connection = serveAcp(agent);
export const closed = connection.closed;
export const access = createAccess({ authenticate: createTokenAuthenticator([]) });
export const login = createLogin();
export const api = createTaskApi({ store, access });
export const chat = createChatHandler({ store, authenticate: () => 'ada', agent });
export const agUi = createAgUiHandler({ store, authenticate: () => 'ada', agent });
export const listening = listen(chat);
export const client = createTaskClient({ url: 'http://localhost' });
export const prometheus = await createPrometheusMetrics();
export const telemetry = createTelemetry({ prometheus });
export const measured = telemetry.observe({ store, agents: { assistant: agent } });
export const webhooks = createWebhooks({ store, webhooks: [] });
export const answered = client.answer('id', { decision: 'yes' });
export const config = defineConfig({});
`;

test('a library can export what our functions return', () => {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-types-'));
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    writeFileSync(join(folder, 'library.ts'), LIBRARY);
    const compilerOptions = {
      strict: true,
      declaration: true,
      emitDeclarationOnly: true,
      target: 'es2023',
      lib: ['es2024', 'esnext.disposable'],
      module: 'nodenext',
      types: ['node'],
      skipLibCheck: true,
      rootDir: '.',
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['library.ts'] }));
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout } = spawnSync(process.execPath, [tsc, '-p', folder], { cwd: folder, encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(readFileSync(join(folder, 'library.d.ts'), 'utf8')).not.toContain('/dist/');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

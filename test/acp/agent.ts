// The agent that tests start as a separate process: a scripted model that does what the prompt names.

import { type AcpOptions, createFileSessions, serveAcp, serveEcho } from '@whoa/acp';
import { CancellationToken, createAgent, defineTool, toText } from '@whoa/core';
import type { ModelRequest } from '@whoa/core/model';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import { anything, treeTool } from './process-tree.ts';

const never = new Promise<never>(() => {});

const SCRIPTS: Readonly<Record<string, readonly ScriptedStep[]>> = {
  tree: ['I start it. ', { call: 'bash', input: { command: 'sleep 300' } }],
  ask: ['May I? ', { call: 'write', input: { path: 'a.txt', content: 'x' } }],
  talk: ['one two three ', { until: never }],
  half: ['A call: ', { type: 'call-start', callId: 'half-1', tool: 'write' }, { until: never }],
  silent: [{ until: never }],
  edit: [{ call: 'edit', input: { path: 'src/a.txt' } }],
  plan: [{ call: 'plan' }, { call: 'slow' }],
  finish: [{ call: 'pay' }],
  print: [{ call: 'print' }],
  deaf: [{ call: 'deaf' }],
  slow: ['Wait. ', { call: 'slow' }],
  fail: [{ fail: new Error('the provider is down; try again later') }],
  stream: [Array.from({ length: 2_000 }, (_, i) => `word${i}`).join(' ')],
};

function script(request: ModelRequest): readonly ScriptedStep[] {
  const last = request.messages.at(-1);
  if (last?.role === 'tool') return [`Done: ${toText(last.content).slice(0, 40)}`];
  const said = last?.role === 'user' ? toText(last.content) : '';
  return SCRIPTS[said] ?? [`You said: ${said}`];
}

/** The agent's tools in tests. */
export function testTools(tag: string): ReturnType<typeof defineTool>[] {
  const about = { description: '', inputSchema: anything };
  return [
    treeTool(tag),
    defineTool({ ...about, name: 'write', effects: 'write', execute: () => 'written' }),
    defineTool({ ...about, name: 'pay', whenCancelled: 'finish', timeoutMs: 300, effects: 'read', execute: pay }),
    defineTool({ ...about, name: 'slow', effects: 'read', execute: (_, { signal }) => untilStopped(signal) }),
    defineTool({ ...about, name: 'deaf', effects: 'read', execute: () => never }),
    defineTool({
      ...about,
      name: 'print',
      effects: 'read',
      execute() {
        console.log('a tool that prints');
        return 'printed';
      },
    }),
    defineTool({
      ...about,
      name: 'plan',
      effects: 'read',
      execute: () => ({ content: 'planned', details: { plan: [{ content: 'first', status: 'in_progress' }] } }),
    }),
    defineTool({
      ...about,
      name: 'edit',
      effects: 'read',
      execute: () => ({
        content: 'edited',
        details: { path: 'src/a.txt', diff: '--- a\n+++ b\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n' },
      }),
    }),
  ];
}

function untilStopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

async function pay(): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 100));
  return 'paid';
}

/** The agent of the tests. */
export function testAgent(tag: string, more: Partial<AcpOptions> = {}): AcpOptions {
  return {
    createAgent: ({ approve }) =>
      createAgent({ name: 'test', model: createScriptedModel([script]), tools: testTools(tag), approve }),
    info: { name: 'test-agent', title: 'Test agent', version: '1.2.3' },
    settings: [
      {
        id: 'model',
        name: 'Model',
        category: 'model',
        options: [
          { value: 'a', name: 'A' },
          { value: 'b', name: 'B' },
        ],
      },
    ],
    contextTokens: 100_000,
    stopMode: { abortMs: 300 },
    flushIntervalMs: 20,
    mcp: { stdio: true, http: true },
    ...more,
  };
}

if (import.meta.main) {
  const { WHOA_TEST_TAG: tag = 'none', WHOA_TEST_FOLDER: folder, WHOA_TEST_ECHO: echo } = process.env;
  const token = new CancellationToken({ name: 'process' });
  process.once('SIGTERM', () => token.cancel({ kind: 'shutdown', via: 'SIGTERM' }, { mode: 'now' }));
  const store = folder === undefined ? {} : { store: createFileSessions({ folder }) };
  const connection =
    echo === undefined ? serveAcp(testAgent(tag, store), { token }) : serveEcho({ delaySeconds: Number(echo), token });
  await connection.closed;
  token[Symbol.dispose]();
}

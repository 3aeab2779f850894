// Compiles our requests against the request types that the vendors publish in their own SDKs.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ScriptedResponse, startLoopbackProvider, type WireFormat } from '@whoa/ai-sdk/testing';
import { createAgent, defineTool, type Message } from '@whoa/core';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loopbackModel, spoken } from '../ai-sdk/providers.ts';
import { ROOT } from '../docs/pages.ts';

const types: Record<WireFormat, string> = {
  chat: "import('openai').OpenAI.Chat.Completions.ChatCompletionCreateParamsStreaming",
  responses: "import('openai').OpenAI.Responses.ResponseCreateParamsStreaming",
  anthropic: "import('@anthropic-ai/sdk').Anthropic.MessageCreateParamsStreaming",
};

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const tools = [
  defineTool({
    name: 'look',
    description: 'Looks',
    inputSchema: z.object({ where: z.string().optional() }),
    effects: 'read',
    execute: () => ({
      content: [
        { type: 'text', text: 'See:' },
        { type: 'image', mediaType: 'image/png', data: PIXEL },
      ],
    }),
  }),
  defineTool({
    name: 'fail',
    description: 'Fails',
    inputSchema: z.object({}),
    effects: 'read',
    execute: () => Promise.reject(new Error('no')),
  }),
];

const script: ScriptedResponse[] = [
  { parts: [{ thinking: 'Hm.' }, { text: 'I look.' }, { call: 'look', input: { where: 'roof' } }, { call: 'fail' }] },
  {
    parts: [
      { call: 'made.up <|x|>', id: 'functions.x:0' },
      { call: 'look', id: '', arguments: '["no object"]' },
    ],
  },
  { parts: [{ text: ['I see a ', { stall: true }] }] },
  { parts: [{ text: 'Fine.' }] },
];

/** The bodies of a conversation with every kind of content that a history can have. */
async function recordBodies(format: WireFormat, version: 'v3' | 'v4'): Promise<unknown[]> {
  await using provider = await startLoopbackProvider({ script });
  const agent = createAgent({
    name: 'a',
    model: loopbackModel(format, provider.url, version),
    tools,
    instructions: 'Be brief.',
  });
  const question: Message = {
    role: 'user',
    content: [
      { type: 'text', text: `Look. ${'😀'.slice(0, 1)}` },
      { type: 'image', mediaType: 'image/png', data: PIXEL },
    ],
  };
  const run = agent.run(question);
  for await (const event of run.events) if (event.type === 'text' && event.text.includes('see')) run.cancel();
  const { messages } = await run.outcome;
  expect(await agent.run('Go on', { history: messages }).outcome).toMatchObject({ status: 'success' });
  return provider.requests.map(({ body }) => body);
}

/**
 * Three fields that OpenAI's types require and its API does not, and which the provider packages omit. They are filled
 * in with the API's own defaults, so that everything else is compared.
 */
function withDefaults(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (_, value: unknown) => {
    const { type, role, content } = (value ?? {}) as Readonly<Record<string, unknown>>;
    if (type === 'input_image') return { detail: 'auto', ...(value as object) };
    if (type === 'function') return { strict: null, ...(value as object) };
    if (type === 'output_text') return { annotations: [], ...(value as object) };
    const isReply = role === 'assistant' && Array.isArray(content);
    return isReply ? { type: 'message', id: 'msg_0', status: 'completed', ...(value as object) } : value;
  });
}

test('every request fits the types of the vendors, with the packages of both specifications', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-types-'));
  try {
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }');
    const options = {
      strict: true,
      noEmit: true,
      module: 'nodenext',
      target: 'es2023',
      skipLibCheck: true,
      types: ['node'],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
    for (const [format, version] of spoken) {
      const sent = await recordBodies(format, version);
      const bodies = format === 'responses' ? sent.map(withDefaults) : sent;
      expect(bodies).toHaveLength(4);
      const lines = bodies.map(
        (body, index) => `export const body${index}: ${types[format]} = ${JSON.stringify(body, null, 1)};`,
      );
      writeFileSync(join(folder, `${format}-${version}.ts`), lines.join('\n'));
    }
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const { stdout, status } = spawnSync(process.execPath, [tsc, '-p', folder], { cwd: folder, encoding: 'utf8' });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

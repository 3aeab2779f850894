import { expect, test } from 'vitest';
import { z } from 'zod';
import { createScriptedModel } from '../testing/scripted-model.ts';
import { defineTool, type Tool } from '../tool/tool.ts';
import { createAgent } from './agent.ts';

const model = createScriptedModel([]);
const look = (description: string): Tool =>
  defineTool({
    name: 'look',
    description,
    inputSchema: z.object({}),
    effects: 'read',
    execute: () => 'seen',
  }) as Tool;

test('the version of an agent follows its instructions and tools, and nothing else', () => {
  const versions = [
    createAgent({ name: 'a', model }),
    createAgent({ name: 'a', model, instructions: 'Be brief.' }),
    createAgent({ name: 'a', model, instructions: 'Be brief!' }),
    createAgent({ name: 'a', model, tools: [look('Looks.')] }),
    createAgent({ name: 'a', model, tools: [look('Looks closely.')] }),
  ].map(({ version }) => version);
  expect(new Set(versions).size).toBe(versions.length);
  for (const version of versions) expect(version).toMatch(/^[0-9a-f]{16}$/);
  const same = createAgent({
    name: 'b',
    model: createScriptedModel([]),
    tools: [look('Looks.')],
    budgets: { maxTurns: 3 },
  });
  expect(same.version).toBe(versions[3]);
});

test('a version can be named, and must have a name', () => {
  expect(createAgent({ name: 'a', model, version: '2026-11-16' }).version).toBe('2026-11-16');
  expect(() => createAgent({ name: 'a', model, version: '' })).toThrow(/version/);
});

import { createRuntime, type Tool } from '@whoa/core';
import { expect, test } from 'vitest';
import { modelErrorFrom } from '../errors.ts';
import { fromAiSdkTools } from '../tools/from-ai-sdk-tools.ts';
import { asJson, asText } from './as-json.ts';

const ring: Record<string, unknown> = { name: 'ring' };
ring['self'] = ring;

test.each([
  ['an object', { a: [1, null] }, '{"a":[1,null]}'],
  ['nothing', undefined, '"undefined"'],
  ['a large number', { count: 2n ** 64n }, '{"count":"18446744073709551616"}'],
  ['a ring', ring, '"[object Object]"'],
])('%s is described as JSON', (_, value, json) => {
  expect(asJson(value)).toBe(json);
  expect(() => JSON.parse(asJson(value)) as unknown).not.toThrow();
});

test('a string is returned unchanged', () => {
  expect(asText('plain')).toBe('plain');
  expect(asText(7)).toBe('7');
});

test('a tool that returns what JSON cannot hold has finished all the same', async () => {
  const jsonSchema = { type: 'object', properties: {} };
  const tools = fromAiSdkTools({
    count: { inputSchema: { jsonSchema }, execute: () => ({ rows: 3n }) },
    loop: { inputSchema: { jsonSchema }, execute: () => ring },
  });
  const runtime = createRuntime({ tools: tools as Tool[] });
  const results = await runtime.execute(['count', 'loop'].map((tool) => ({ id: tool, tool, input: {} })));
  expect(results).toMatchObject([
    { state: 'finished', content: '{"rows":"3"}', details: { rows: '3' } },
    { state: 'finished', content: '"[object Object]"' },
  ]);
});

test('a failure that is cyclic, or very long, is still described briefly', () => {
  const about = { model: 'test/model', hasContent: false };
  expect(modelErrorFrom(ring, about)).toMatchObject({
    code: 'MODEL_ERROR',
    message: 'test/model failed: "[object Object]"',
  });
  expect(modelErrorFrom(new Error('x'.repeat(1_000_000)), about).message.length).toBeLessThan(3_000);
});

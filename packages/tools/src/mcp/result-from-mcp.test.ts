import { expect, test } from 'vitest';
import { describeProgress, resultFromMcp } from './result-from-mcp.ts';

test('text is joined, images stay images, the rest is named', () => {
  expect(
    resultFromMcp({
      content: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    }),
  ).toEqual({ content: 'a\nb' });
  const mixed = resultFromMcp({
    content: [
      { type: 'image', mimeType: 'image/png', data: 'AA==' },
      { type: 'audio', mimeType: 'audio/wav', data: 'AA==' },
      { type: 'resource_link', name: 'manual', uri: 'file:///manual' },
      { type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside' } },
      { type: 'resource', resource: { uri: 'file:///b.bin', blob: 'AA==' } },
    ],
  });
  expect(mixed.content).toEqual([
    { type: 'image', mediaType: 'image/png', data: 'AA==' },
    { type: 'text', text: '[audio audio/wav]' },
    { type: 'text', text: '[manual: file:///manual]' },
    { type: 'text', text: 'file:///a.txt\ninside' },
    { type: 'text', text: '[file:///b.bin: binary data]' },
  ]);
});

test('structured content goes to the details, and to the model only if there is nothing else', () => {
  const structuredContent = { said: 'x' };
  expect(resultFromMcp({ content: [], structuredContent })).toEqual({
    content: '{"said":"x"}',
    details: { structuredContent },
  });
  expect(resultFromMcp({ content: [{ type: 'text', text: 'x' }], structuredContent, isError: true })).toEqual({
    content: 'x',
    details: { structuredContent },
    isError: true,
  });
});

test('structured content that is nested too deeply is named and left out', () => {
  let deep: Record<string, unknown> = {};
  for (let i = 0; i < 5_000; i++) deep = { a: deep };
  const left = '[structured content left out: it is nested too deeply]';
  expect(resultFromMcp({ content: [], structuredContent: deep })).toEqual({ content: left });
  const said = { content: [{ type: 'text' as const, text: 'done' }], structuredContent: deep };
  expect(resultFromMcp(said)).toEqual({ content: `done\n${left}` });
});

test('endless text is cut, and the result shows how much', () => {
  const { content } = resultFromMcp({ content: [{ type: 'text', text: 'x'.repeat(100_010) }] });
  expect(content).toMatch(/x\n\[\+10 characters\]$/);
});

test('progress reads like progress', () => {
  expect(describeProgress({ progress: 3, total: 10, message: 'reading' })).toEqual({
    content: '3 of 10: reading',
    details: { progress: 3, total: 10 },
  });
  expect(describeProgress({ progress: 3 })).toEqual({ content: '3', details: { progress: 3 } });
});

import { expect, test } from 'vitest';
import { type Redact, redactResult } from './redact.ts';
import type { Json, ToolResult } from './result.ts';

const hide: Redact = (text) => ({ text: text.replaceAll('key', '***'), count: text.split('key').length - 1 });

test('without a redaction, or with nothing to take out, a result passes unchanged', () => {
  const result = { content: [{ type: 'text', text: 'a key' }], details: { key: 'key' } } as const;
  expect(redactResult(result, undefined)).toBe(result);
  const clean = { content: 'nothing', details: { n: 1 }, error: 'none' };
  expect(redactResult(clean, hide)).toBe(clean);
});

test('a redaction removes a secret from all texts and names, and counts it; other values stay', () => {
  const details = { key: ['a key', 7, null, true, { inner: 'key key' }], absent: undefined, nothing: null };
  const redacted = redactResult({ content: 'the key', details, error: 'key!', isError: true }, hide);
  expect(redacted).toStrictEqual({
    content: 'the ***',
    details: { '***': ['a ***', 7, null, true, { inner: '*** ***' }], nothing: null },
    error: '***!',
    isError: true,
    redacted: 6,
  });
  expect(Object.isFrozen(redacted)).toBe(true);
  const { '***': list } = redacted.details as unknown as Record<string, Json[]>;
  expect([redacted.details, list, list?.[4]].every(Object.isFrozen)).toBe(true);
});

test('a missing name in details is skipped', () => {
  const result = { content: 'fine', details: { key: undefined } };
  expect(redactResult(result, hide)).toBe(result);
});

test('text parts are redacted, and images are skipped', () => {
  const image = { type: 'image', mediaType: 'image/png', data: 'key' } as const;
  const redacted = redactResult({ content: [{ type: 'text', text: 'key' }, image] }, hide);
  expect(redacted).toStrictEqual({ content: [{ type: 'text', text: '***' }, image], redacted: 1 });
  expect([redacted.content, redacted.content[0]].every(Object.isFrozen)).toBe(true);
});

test.each<[string, unknown]>([
  ['no text', { text: 7, count: 1 }],
  ['no count', { text: 'x', count: 0.5 }],
])('a redaction with %s reveals only that the call ended', (_, answer) => {
  const said = 'It ended, but what it returned could not be redacted.';
  const redact = (): never => answer as never;
  const result: ToolResult & { error?: string } = { content: 'key', details: { a: 1 }, isError: true };
  expect(redactResult(result, redact)).toStrictEqual({ content: said, isError: true });
  const failed = redactResult({ ...result, error: 'key' }, redact);
  expect(failed).toStrictEqual({ content: said, isError: true, error: said });
  expect(Object.isFrozen(failed)).toBe(true);
});

import { describe, expect, test } from 'vitest';
import { answeredId, readFrame } from './frame.ts';
import { Lines } from './lines.ts';

const code = (line: string): unknown => {
  const frame = readFrame(line);
  return frame.type === 'refusal' && 'error' in frame.answer ? [frame.answer.id, frame.answer.error.code] : frame.type;
};

describe('a line', () => {
  test('a line with a message is read as one, whatever else it holds', () => {
    expect(code('{"jsonrpc":"2.0","id":1,"method":"a"}')).toBe('message');
    expect(code('{"jsonrpc":"2.0","method":"a","__proto__":{"x":1}}')).toBe('message');
    expect(code('{"jsonrpc":"2.0","id":1,"result":{}}\r')).toBe('message');
  });

  test('an empty line is ignored', () => {
    expect(code('')).toBe('nothing');
    expect(code(' \r')).toBe('nothing');
  });

  test.each([
    ['{', [null, -32700]],
    ['[]', [null, -32600]],
    ['null', [null, -32600]],
    ['7', [null, -32600]],
    ['{}', [null, -32600]],
    ['{"id":7,"method":"a"}', [7, -32600]],
    ['{"jsonrpc":"2.0","id":{},"method":"a"}', [null, -32600]],
    ['{"jsonrpc":"2.0","id":"x","method":7}', ['x', -32600]],
  ])('%s is rejected', (line, refusal) => {
    expect(code(line)).toEqual(refusal);
  });

  test('a line that is nested too deeply to be serialized is rejected', () => {
    const depth = 100_000;
    const line = `{"jsonrpc":"2.0","id":1,"method":"a","params":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`;
    expect(code(line)).toEqual([null, expect.any(Number)]);
  });

  test('a rejected line is not echoed', () => {
    expect(JSON.stringify(readFrame('{"secret":"hunter2"}'))).not.toContain('hunter2');
  });
});

describe('lines', () => {
  test('lines are read across chunk boundaries', () => {
    const lines = new Lines(100);
    const bytes = Buffer.from('one\ntwö\n\nrest');
    const found = [...bytes].flatMap((byte) => [...lines.push(Buffer.from([byte]))]);
    expect([...found, ...lines.end()]).toEqual(['one', 'twö', '', 'rest']);
  });

  test('lines that are too long are skipped, and the next is read', () => {
    const lines = new Lines(5);
    expect([...lines.push(Buffer.from('123456'))]).toEqual([]);
    expect([...lines.push(Buffer.from('789\nok\n12345\n'))]).toEqual([{ head: '123456' }, 'ok', '12345']);
    expect([...lines.end()]).toEqual([]);
  });
});

test('an answer that is too long is known by its beginning, and nothing else is taken for one', () => {
  expect(answeredId('{"jsonrpc":"2.0","id":7,"result":{"content":"')).toBe(7);
  expect(answeredId('{ "id" : "a-1", "result": "')).toBe('a-1');
  for (const head of ['{"jsonrpc":"2.0","id":7,"method":"x","params":"', '{"result":"', '{"id":{},"result":"', 'xx'])
    expect(answeredId(head)).toBeUndefined();
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HeadTail } from './head-tail.ts';

const feed = (kept: HeadTail, bytes: Uint8Array, size: number): void => {
  for (let at = 0; at < bytes.length; at += size) kept.push(bytes.subarray(at, at + size));
};

test('output that fits is kept whole', () => {
  const kept = new HeadTail({ headBytes: 8, tailBytes: 8 });
  feed(kept, Buffer.from('twelve bytes'), 5);
  expect(kept.read()).toEqual({ head: '', tail: 'twelve bytes', omittedBytes: 0 });
});

test('output that is too long keeps its beginning and its end, as whole lines', () => {
  const kept = new HeadTail({ headBytes: 10, tailBytes: 10 });
  feed(kept, Buffer.from('one\ntwo\nthree\nfour\nfive\nsix\n'), 7);
  expect(kept.read()).toEqual({ head: 'one\ntwo\n', tail: 'five\nsix\n', omittedBytes: 11 });
  expect(kept.lines).toBe(6);
  expect(kept.bytes).toBe(28);
});

test('a character is never split, wherever the borders fall', () => {
  const text = 'aü€😀'.repeat(40);
  for (let headBytes = 0; headBytes < 24; headBytes++) {
    for (let tailBytes = 0; tailBytes < 24; tailBytes++) {
      const kept = new HeadTail({ headBytes, tailBytes });
      feed(kept, Buffer.from(text), 3);
      const { head, tail } = kept.read();
      expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
    }
  }
});

test('the kept and the omitted bytes add up', () => {
  const sizes = fc.record({ headBytes: fc.nat(40), tailBytes: fc.nat(40), step: fc.integer({ min: 1, max: 50 }) });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), sizes, (bytes, { step, ...options }) => {
      const ascii = bytes.map((byte) => (byte % 90) + 10);
      const kept = new HeadTail(options);
      feed(kept, ascii, step);
      const { head, tail, omittedBytes } = kept.read();
      expect(head.length + tail.length + omittedBytes).toBe(ascii.length);
      const whole = Buffer.from(ascii).toString();
      expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
    }),
  );
});

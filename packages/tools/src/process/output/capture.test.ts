import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Capture, conciseText } from './capture.ts';

test('a short output is shown whole, without its escapes', () => {
  const capture = new Capture();
  capture.push(Buffer.from('\u001b[1mok\u001b[0m\n'));
  expect(capture.read().tail).toBe('\u001b[1mok\u001b[0m\n');
  expect(conciseText(capture.read(), 100)).toBe('ok');
});

test('a long one is cut in the middle, and the cut is marked', () => {
  const capture = new Capture({ headBytes: 100, tailBytes: 100 });
  for (let line = 0; line < 1_000; line++) capture.push(Buffer.from(`line ${line}\n`));
  const text = conciseText(capture.read(), 80);
  expect(text.startsWith('line 0\n')).toBe(true);
  expect(text.endsWith('line 999')).toBe(true);
  expect(text).toContain('[… the middle of 8890 bytes in 1000 lines is left out …]');
});

test('one endless line is cut within the limit and not within a character', () => {
  const capture = new Capture();
  capture.push(Buffer.from('😀'.repeat(10_000)));
  const text = conciseText(capture.read(), 101);
  expect(text.isWellFormed()).toBe(true);
  expect(text.length).toBeLessThan(200);
});

test('the full log is readable only by this user and removed with its owner', () => {
  const folder = mkdtempSync(join(tmpdir(), 'capture-'));
  const capture = new Capture({ headBytes: 4, tailBytes: 4, logFolder: folder });
  capture.push(Buffer.from('everything there was'));
  const { path } = capture.log!;
  expect(readFileSync(path, 'utf8')).toBe('everything there was');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  capture[Symbol.dispose]();
  expect(() => statSync(path)).toThrow('ENOENT');
  rmSync(folder, { recursive: true });
});

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { FullLog } from './full-log.ts';

function open(maxBytes: number): FullLog {
  const folder = mkdtempSync(join(tmpdir(), 'full-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return new FullLog(folder, { maxBytes });
}

test('a log that is long enough is whole', () => {
  using log = open(10);
  log.write(Buffer.from('12345'));
  log.write(Buffer.from('67890'));
  expect(readFileSync(log.path, 'utf8')).toBe('1234567890');
  expect(log.problem).toBeUndefined();
});

test('a log keeps the first part of what is too long, and reports it', () => {
  using log = open(10);
  log.write(Buffer.from('123456'));
  log.write(Buffer.from('789012'));
  log.write(Buffer.from('345'));
  expect(readFileSync(log.path, 'utf8')).toBe('1234567890');
  expect(log.problem).toBe('it is limited to 10 bytes');
});

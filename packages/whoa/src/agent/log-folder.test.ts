import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openLogFolder } from './log-folder.ts';

function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-logs-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('the folder is for this user only, and old logs are removed from it', () => {
  const folder = join(scratch(), 'logs');
  expect(openLogFolder(folder)).toEqual({ folder });
  expect(statSync(folder).mode & 0o077).toBe(0);
  for (const name of ['old.log', 'new.log']) writeFileSync(join(folder, name), 'x');
  const eightDaysAgo = Date.now() / 1_000 - 8 * 24 * 3_600;
  utimesSync(join(folder, 'old.log'), eightDaysAgo, eightDaysAgo);
  openLogFolder(folder);
  expect(readdirSync(folder)).toEqual(['new.log']);
});

test('logs are disabled where the folder cannot be created', () => {
  const file = join(scratch(), 'file');
  writeFileSync(file, '');
  expect(openLogFolder(join(file, 'logs'))).toBe(false);
});

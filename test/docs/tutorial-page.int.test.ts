// The shell blocks of docs/tutorial.md are run byte for byte, in sequence, as a reader pastes them into a shell of a clone:
// with its ports, on a separate network and among separate processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../tasks/child.ts';
import { findBlocks, ROOT } from './pages.ts';

/** Everything is where it is in a clone, but what the page writes is written here. */
function createClone(folder: string): void {
  for (const name of readdirSync(ROOT)) if (name !== 'examples') symlinkSync(join(ROOT, name), join(folder, name));
  mkdirSync(join(folder, 'examples'));
  cpSync(join(ROOT, 'examples/web-chat'), join(folder, 'examples/web-chat'), { recursive: true });
}

/** Loopback only, and every process ends with the shell. */
const ALONE = ['--unshare-net', '--unshare-pid', '--die-with-parent', '--bind', '/', '/', '--dev-bind', '/dev', '/dev'];

/** The words of a streamed reply, in sequence. */
function textShown(stream: string): string {
  const words = stream
    .split('\n')
    .filter((line) => line.includes('"text-delta"'))
    .map((line) => (JSON.parse(line.slice('data: '.length)) as { delta: string }).delta);
  expect(words).not.toEqual([]);
  return words.join('');
}

/** The text of the reply in a conversation. */
function textKept(conversation: string): string {
  const [, reply] = JSON.parse(conversation) as { parts: { type: string; text: string }[] }[];
  return (reply?.parts ?? [])
    .filter(({ type }) => type === 'text')
    .map((part) => part.text)
    .join('');
}

test('the tutorial, pasted into an empty shell, stops a reply through the other instance and finishes one of a killed instance', async () => {
  using folder = temporaryFolder();
  createClone(folder.path);
  const blocks = findBlocks('docs/tutorial.md').filter(({ language }) => language === 'sh');
  const shell = spawn(
    'bwrap',
    [...ALONE, '--proc', '/proc', '--chdir', folder.path, 'bash', '-euc', blocks.map((block) => block.text).join('\n')],
    {
      env: { PATH: `${process.execPath.replace(/\/node$/, '')}:${process.env['PATH']}`, HOME: folder.path },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const closed = once(shell, 'close') as Promise<[code: number | null]>;
  const [output, [code]] = await Promise.all([text(shell.stdout), closed]);
  const read = (file: string): string => readFileSync(join(folder.path, file), 'utf8');
  expect(output).toContain('data-stop-report');
  expect(output).toContain('"type":"finish"');
  expect(output).not.toMatch(/no text in a minute|nothing answers/);
  expect(code).toBe(0);
  expect(read('receipt.json')).toContain('"accepted"');
  expect(textKept(read('a.json'))).toBe(textShown(read('reply.txt')));
  expect(read('rest.txt')).toContain('"agent "');
});

// Uses paths under a root while another process swaps them for links that point outside. Nothing outside may be read or
// changed.
import { fork } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CallResult, createRuntime, toText } from '@whoa/core';
import { createFileTools, createRoot } from '@whoa/tools';
import type { RootOptions } from '../../packages/tools/src/files/path/root.ts';

const SECRET = 'secret outside';

export interface SwapCampaignResult {
  readonly iterations: number;
  readonly swaps: number;
  /** Contents or names from outside that a tool showed, and changes outside. */
  readonly escapes: number;
  /** How the calls ended, so that one can see the race was a race. */
  readonly ends: Readonly<Record<string, number>>;
}

export async function swapPaths(
  folder: string,
  iterations: number,
  options?: RootOptions,
): Promise<SwapCampaignResult> {
  const root = join(folder, 'root');
  const outside = join(folder, 'outside');
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, 'secret.txt'), `${SECRET}\n`);
  writeFileSync(join(outside, 'only-outside.txt'), `${SECRET}\n`);
  const swapper = fork(join(import.meta.dirname, 'swapper.ts'), [root, outside], { stdio: 'inherit' });
  const ended = new Promise((resolve) => swapper.once('exit', resolve));
  const died = ended.then(() => Promise.reject(new Error('the swapper died')));
  died.catch(() => undefined);
  await Promise.race([died, new Promise((resolve) => swapper.once('message', resolve))]);
  const runtime = createRuntime({ tools: createFileTools({ root: createRoot(root, options) }), concurrency: 8 });
  const ends: Record<string, number> = {};
  let escapes = 0;
  for (let done = 0; done < iterations; ) {
    const calls = Array.from({ length: Math.min(100, iterations - done) }, (_, i) => callFor(done + i));
    const results = await runtime.execute(calls);
    for (const result of results) {
      escapes += sawOutside(result) ? 1 : 0;
      const end = `${result.tool} ${result.state}`;
      ends[end] = (ends[end] ?? 0) + 1;
    }
    done += calls.length;
  }
  const swaps = new Promise<number>((resolve) => {
    swapper.once('message', (message: { swaps: number }) => resolve(message.swaps));
  });
  if (swapper.connected) swapper.send('stop');
  const count = await Promise.race([died, swaps]);
  await ended;
  escapes += changesOutside(outside);
  return { iterations, swaps: count, escapes, ends };
}

/** Mostly reads and writes; a search now and then, since each starts a process. */
function callFor(index: number) {
  const id = String(index);
  if (index % 500 === 0) return { id, tool: 'grep', input: { pattern: 'secret|inside' } };
  if (index % 500 === 250) return { id, tool: 'find', input: { glob: '*' } };
  const path = index % 2 === 0 ? 'file.txt' : 'folder/secret.txt';
  if (index % 7 === 0) return { id, tool: 'ls', input: { path: 'folder' } };
  if (index % 11 === 0) return { id, tool: 'write', input: { path, content: 'inside\n' } };
  if (index % 13 === 0)
    return { id, tool: 'edit', input: { path, edits: [{ oldText: 'inside', newText: 'inside ' }] } };
  return { id, tool: 'read', input: { path } };
}

function sawOutside({ content, details }: CallResult): boolean {
  const shown = toText(content) + JSON.stringify(details ?? null);
  return shown.includes(SECRET) || shown.includes('only-outside');
}

function changesOutside(outside: string): number {
  const names = readdirSync(outside).filter((name) => name !== 'secret.txt' && name !== 'only-outside.txt');
  const contents = ['secret.txt', 'only-outside.txt'].map((name) => readFileSync(join(outside, name), 'utf8'));
  return names.length + contents.filter((content) => content !== `${SECRET}\n`).length;
}

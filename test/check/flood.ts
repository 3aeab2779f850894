// Sends 100 MB of updates through `whoa acp -- COMMAND`, and measures its process.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../docs/pages.ts';

/**
 * V8 rarely returns memory that it could still use, so the size of a process does not show how much it retains. With
 * these limits, a process that retains more dies.
 */
const LIMITS = ['--max-old-space-size=40', '--max-semi-space-size=2'];

const AGENT = `
import { once } from 'node:events';
import { createInterface } from 'node:readline';
const [bytes, size] = process.argv.slice(1).map(Number);
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const content = { type: 'text', text: 'x'.repeat(size) };
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method } = JSON.parse(line);
  if (method !== 'session/prompt') return void say({ id, result: { protocolVersion: 1, sessionId: 's' } });
  for (let sent = 0; sent < bytes; sent += size)
    if (!say({ method: 'session/update', params: { sessionId: 's', update: { sessionUpdate: 'agent_message_chunk', content } } }))
      await once(process.stdout, 'drain');
  say({ id, result: { stopReason: 'end_turn' } });
}).on('close', () => process.exit(0));
`;

export interface FloodReport {
  /** How much arrived at the editor. */
  readonly bytes: number;
  /** By how much the process of the proxy grew, at most, from the moment when a session was open. */
  readonly grownBytes: number;
  /** The text of the last line. */
  readonly end: string;
}

/** Makes an agent send `bytes` bytes of text, in chunks of `size`. */
export async function flood({ bytes, size }: { readonly bytes: number; readonly size: number }): Promise<FloodReport> {
  const node = ['--conditions=@whoa/source', '--no-warnings'];
  const agent = [process.execPath, '--input-type=module', '-e', AGENT, `${bytes}`, `${size}`];
  const whoa = join(ROOT, 'packages/whoa/src/bin.ts');
  const proxy = spawn(process.execPath, [...LIMITS, ...node, whoa, 'acp', '--', ...agent], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ask = (id: number, method: string): void => {
    const params = { protocolVersion: 1, sessionId: 's', cwd: ROOT, mcpServers: [], prompt: [] };
    proxy.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  };
  ask(1, 'initialize');
  ask(2, 'session/new');
  let got = 0;
  let before = 0;
  let tail = '';
  for await (const chunk of proxy.stdout as AsyncIterable<Buffer>) {
    got += chunk.length;
    tail = (tail + chunk.toString('latin1')).slice(-1_000);
    if (before === 0 && tail.includes('"id":2')) {
      before = readSize(proxy.pid!, 'VmRSS');
      ask(3, 'session/prompt');
    }
    if (tail.includes('"id":3')) break;
  }
  const grownBytes = readSize(proxy.pid!, 'VmHWM') - before;
  proxy.stdin.end();
  await once(proxy, 'exit');
  return { bytes: got, grownBytes, end: tail.trim().split('\n').at(-1) ?? '' };
}

function readSize(pid: number, name: string): number {
  const text = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]) * 1_024;
}

// How long the command takes to start, beside a bare Node in the same run: node -e 0.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { percentile, report } from './measure/measure.ts';

const SAMPLES = 25;
const WARM_UP = 3;
const bin = join(import.meta.dirname, '../packages/whoa/dist/bin.js');
const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const env = { ...process.env, XDG_STATE_HOME: folder, NODE_COMPILE_CACHE: join(folder, 'cache') };

function measure(args: readonly string[], input = ''): number {
  const from = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { env, input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  if (input !== '' && !stdout.includes('"result"')) throw new Error(`${args.join(' ')} did not answer`);
  return performance.now() - from;
}

const HELLO = { protocolVersion: 1, clientCapabilities: {} };
/** What an editor says first. The agent answers, finds that the editor has gone, and ends. */
const hello = `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: HELLO })}\n`;
const commands: Readonly<Record<string, { readonly args: readonly string[]; readonly input?: string }>> = {
  version: { args: [bin, '--version'] },
  tasks: { args: [bin, 'tasks'] },
  acp: { args: [bin, 'acp'], input: hello },
};
const bare: number[] = [];
/** What no agent that uses the protocol's own library can be faster than. */
const library: number[] = [];
const libraryUrl = import.meta.resolve('@agentclientprotocol/sdk');
const ours = new Map<string, number[]>(Object.keys(commands).map((name) => [name, []]));
// One after the other, so that a busy moment of the machine falls on all alike.
for (let i = -WARM_UP; i < SAMPLES; i++) {
  const bareMs = measure(['-e', '0']);
  const libraryMs = measure(['-e', `import('${libraryUrl}')`]);
  if (i >= 0) bare.push(bareMs);
  if (i >= 0) library.push(libraryMs);
  for (const [name, { args, input }] of Object.entries(commands)) {
    const ms = measure(args, input);
    if (i >= 0) ours.get(name)!.push(ms);
  }
}
rmSync(folder, { recursive: true });
for (const [name, samples] of ours) {
  report({
    name: `startup-${name}`,
    ours: percentile(samples, 0.5),
    bare: percentile(bare, 0.5),
    goal: { atMost: 5 },
    more: {
      unit: 'ms',
      samples: SAMPLES,
      p95: Math.round(percentile(samples, 0.95)),
      ...(name === 'acp' && { libraryAlone: Math.round(percentile(library, 0.5)) }),
    },
  });
}

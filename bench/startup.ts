// How long the command takes to start, compared with a bare Node in the same run: node -e 0. `acp`: until an editor has
// its first response.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { percentile, report } from './measure/measure.ts';

const SAMPLES = 25;
const WARM_UP = 3;
const bin = join(import.meta.dirname, '../packages/whoa/dist/bin.js');
const folder = mkdtempSync(join(tmpdir(), 'whoa-bench-'));
const env = { ...process.env, XDG_STATE_HOME: folder, NODE_COMPILE_CACHE: join(folder, 'cache') };

function measure(args: readonly string[]): number {
  const from = performance.now();
  const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`);
  return performance.now() - from;
}

const REQUESTS = [
  { id: 1, method: 'initialize', params: { protocolVersion: 1, clientCapabilities: {} } },
  { id: 2, method: 'session/new', params: { cwd: folder, mcpServers: [] } },
];

/** An editor's first requests; resolves when each has a response. */
async function edit(): Promise<number[]> {
  const from = performance.now();
  const args = [bin, 'acp', '--model', `scripted:${script}`];
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const lines = createInterface({ input: child.stdout });
  const times: number[] = [];
  for (const request of REQUESTS) {
    const answer = once(lines, 'line');
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...request })}\n`);
    const [line] = (await answer) as [string];
    times.push(performance.now() - from);
    if (!('result' in (JSON.parse(line) as object))) throw new Error(`${request.method}: ${line}`);
  }
  child.stdin.end();
  await exited;
  return times;
}

const commands = { version: [bin, '--version'], tasks: [bin, 'tasks'] };
const script = join(folder, 'script.json');
writeFileSync(script, '[["Hello."]]');
const bare: number[] = [];
/** The load time of the protocol's own library. It is loaded after the first response, and before the first session. */
const library: number[] = [];
const libraryUrl = import.meta.resolve('@agentclientprotocol/sdk');
/** Until a prompt can be sent. */
const session: number[] = [];
const ours = new Map<string, number[]>([...Object.keys(commands), 'acp'].map((name) => [name, []]));
// In sequence, so that a busy moment of the machine affects all of them.
for (let i = -WARM_UP; i < SAMPLES; i++) {
  const bareMs = measure(['-e', '0']);
  const libraryMs = measure(['-e', `import('${libraryUrl}')`]);
  if (i >= 0) bare.push(bareMs);
  if (i >= 0) library.push(libraryMs);
  for (const [name, args] of Object.entries(commands)) {
    const ms = measure(args);
    if (i >= 0) ours.get(name)!.push(ms);
  }
  const [helloMs, sessionTtlMs] = await edit();
  if (i >= 0) ours.get('acp')!.push(helloMs!);
  if (i >= 0) session.push(sessionTtlMs!);
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
      ...(name === 'acp' && {
        libraryAlone: Math.round(percentile(library, 0.5)),
        untilSession: Math.round(percentile(session, 0.5)),
      }),
    },
  });
}

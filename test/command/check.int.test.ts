// The cancel check kit from the command line: its output, its files, and its exit codes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { BIN, createHome, type Home } from './terminal.ts';

const AGENT = [process.execPath, '--no-warnings', join(import.meta.dirname, '../check/faulty-agents/agent.ts')];

function home(files?: Readonly<Record<string, string>>): Home {
  const made = createHome(files);
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

test('a pass is reported with exit code 0, a report and a badge', async () => {
  const own = home();
  const [junit, badge] = [own.folder.at('check.xml'), own.folder.at('badge.svg')];
  const files = ['--junit', junit, '--badge', badge];
  const { status, stdout } = await own.main([
    'check',
    '--only',
    'one-end',
    '--timeout',
    '20s',
    ...files,
    '--',
    ...AGENT,
  ]);
  expect(status).toBe(0);
  expect(stdout).toContain('✔ one-end: A cancelled turn ends exactly once');
  expect(stdout).toContain('none 1: 1 passed, 0 failed, 0 unclear, 0 do not apply');
  expect(readFileSync(junit, 'utf8')).toContain('tests="1" failures="0"');
  expect(readFileSync(badge, 'utf8')).toContain('stops when told: 1 of 1');
});

test('files in the command are found from where it is given', async () => {
  const own = home({ 'agent.mjs': `import '${AGENT.at(-1)}';` });
  symlinkSync(process.execPath, own.folder.at('my-node'));
  const command = ['./my-node', '--no-warnings', 'agent.mjs'];
  const { stdout, stderr } = await own.main(['check', '--only', 'one-end', '--timeout', '20s', '--', ...command]);
  expect(stderr).toBe('');
  expect(stdout).toContain('1 passed, 0 failed');
});

test('a failure is reported with the observation and the rule, and exit code 1', async () => {
  const args = ['check', '--json', '--only', 'cancel-streaming', '--timeout', '20s', '--', ...AGENT, 'end-turn'];
  const { status, stdout } = await home().main(args);
  expect(status).toBe(1);
  const [check, report] = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(check).toMatchObject({
    type: 'check',
    status: 'failed',
    detail: "the turn ended as 'completed' (stopReason end_turn)",
  });
  expect(check).toMatchObject({ rule: { level: 'MUST' } });
  expect(report).toMatchObject({ type: 'report', agent: 'end-turn 1', protocol: 'acp', counts: { failed: 1 } });
});

test('an agent that cannot be checked is an error, not a pass', async () => {
  const own = home();
  const gone = await own.main(['check', '--protocol', 'chat', 'http://127.0.0.1:9/api/chat']);
  expect([gone.status, gone.stdout]).toEqual([1, '']);
  expect(gone.stderr).toContain("a plain prompt ended as 'error' (fetch failed: ");
  const missing = await own.main(['check', '--', 'no-such-agent']);
  expect(missing.status).toBe(1);
  expect(missing.stderr).toContain('ENOENT');
  const mute = await own.main(['check', '--', process.execPath, '-e', `console.log('${'hello'.repeat(1_000)}')`]);
  expect(mute.status).toBe(1);
  expect(mute.stderr).toContain("the agent ended before it answered 'initialize'");
  const bare = await own.main(['check', '--only', 'leftovers', '--', ...BIN, 'echo', '--delay', '0']);
  expect(bare.status).toBe(1);
  expect(bare.stdout).toContain('0 passed, 0 failed, 0 unclear, 4 do not apply');
});

test('Ctrl-C ends the check and its processes', async () => {
  const own = home();
  const [file = '', ...rest] = BIN;
  const args = [...rest, 'check', '--json', '--', ...AGENT];
  const child = spawn(file, args, { cwd: own.folder.path, env: own.env, stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  child.kill('SIGINT');
  const [code] = (await once(child, 'exit')) as [number | null];
  expect(code).toBe(130);
});

import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { isNight } from '../night.ts';
import type { InProcess } from './in-process.ts';
import { BIN, createHome, type Home, type Terminal } from './terminal.ts';

const SLOW = [['Let me see. ', { call: 'bash', input: { command: 'echo begun; sleep 300 | tail' } }], ['All is well.']];

function home(script: unknown, files: Record<string, string> = {}): Home {
  const made = createHome({ 'script.json': JSON.stringify(script), ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

function start(terminal: Terminal, options = '--yes --sandbox none'): void {
  terminal.type(`whoa run --model scripted:script.json ${options} 'Is all well?'; echo "exit:$?"`);
  terminal.press('Enter');
}

const SIZE = { columns: 110, rows: 40 };
const ALONE = ['--yes', '--sandbox', 'none'];

/** The same run in this process, whose keys are typed and whose signals are sent by the test. */
function startHere(own: Home, options = ALONE, terminal = SIZE): InProcess {
  return own.start(['run', '--model', 'scripted:script.json', ...options, 'Is all well?'], { terminal });
}

/** The processes that still run in the folder of a test, except for its terminals. */
function alive({ folder }: Home): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => workingFolder(pid) === folder.path)
    .map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim())
    .filter((command) => !/^(tmux|bash --norc)/.test(command));
}

interface End {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Checks how it ended, and its output. */
function expectEnd(end: End, { status, stdout = '', stderr = '' }: Partial<End>): void {
  expect(end.stdout).toContain(stdout);
  expect(end.stderr).toContain(stderr);
  expect(end.status).toBe(status);
}

function workingFolder(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return undefined;
  }
}

/** A run whose process is killed before the first test. The lease on its task takes 15 s to end, during which the others run. */
let killed: { readonly own: Home; readonly id: string; readonly watch: InProcess };
beforeAll(async () => {
  const own = createHome({ 'script.json': JSON.stringify(SLOW) });
  const [file = '', ...args] = BIN;
  const options = {
    cwd: own.folder.path,
    env: own.env,
    stdio: ['ignore', 'pipe', 'inherit'] as ['ignore', 'pipe', 'inherit'],
  };
  const child = spawn(
    file,
    [...args, 'run', '--json', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json', 'hi'],
    options,
  );
  for await (const chunk of child.stdout) if (String(chunk).includes('begun\\n')) break;
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('close', resolve));
  const { id } = JSON.parse((await own.main(['tasks', '--json'])).stdout) as { id: string };
  killed = { own, id, watch: own.start(['watch', id]) };
});
afterAll(() => killed.own[Symbol.dispose]());

test('Ctrl-C once lets the call finish with a graceful stopMode, prints the report and exits with 130', async () => {
  const script = [[{ call: 'bash', input: { command: 'echo begun; sleep 1.5; echo whole > done.txt' } }], ['Next.']];
  const own = home(script, { 'config/whoa/whoa.config.mjs': "export default { stopMode: 'graceful' };" });
  const terminal = own.openTerminal();
  start(terminal);
  await terminal.waitFor(/bash: begun/);
  terminal.press('C-c');
  const seen = await terminal.waitFor(/exit:130/);
  expect(seen).toMatch(/Stopped after \d+.* ms \(user, by \S+, via Ctrl-C\); nothing was left behind/);
  expect(seen).toMatch(/drain: nothing new starts\n.*bash finished\n.*settled/);
  expect(seen).not.toContain('Next.');
  expect(own.folder.read('done.txt')).toBe('whole\n');
});

/** An agent that leaves a process running in its containment, and whose cleanups fail. */
const UNTIDY = (cleanup: string): string => `
import { createAgent } from '${import.meta.resolve('@whoa/core')}';
export default {
  agents: {
    untidy: async ({ model, tools, approve, defer }) => {
      defer(${cleanup});
      return createAgent({ name: 'untidy', model: await model(), tools, approve });
    },
  },
};`;

test.each([
  ['throws', "() => { throw new Error('no luck'); }", 'whoa: A cleanup failed: no luck\n'],
  ['hangs', '() => new Promise(() => {})', 'whoa: The cleanup of the agent did not end within 2000 ms\n'],
])('a cleanup that %s is reported, and neither hangs the command nor leaves a process', (_how, cleanup, said) => {
  const script = [[{ call: 'bash', input: { command: 'sleep 300 & echo begun' } }], ['Done.']];
  const own = home(script, { 'config/whoa/whoa.config.mjs': UNTIDY(cleanup) });
  const end = own.whoa(['run', '--model', 'scripted:script.json', '--yes', '--sandbox', 'none', 'Go.']);
  expectEnd(end, { status: 0, stdout: 'Done.', stderr: said });
  expect(alive(own)).toEqual([]);
});

test('Ctrl-C once interrupts the call and ends its processes', async () => {
  const own = home(SLOW);
  const terminal = own.openTerminal();
  start(terminal);
  await terminal.waitFor(/bash: begun/);
  terminal.press('C-c');
  const seen = await terminal.waitFor(/exit:130/);
  expect(seen).toMatch(/abort: what can be interrupted stops\n.*bash interrupted, \d processes ended/);
  expect(seen).toContain('stopping now: interrupting bash, 2 s at most · Ctrl-C again kills it');
  expect(seen).not.toContain('drain');
  expect(alive(own)).toEqual([]);
});

const DEAF = `
import { createAgent, defineConfig, defineTool } from 'whoa';
const any = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const deaf = (more) => defineTool({
  name: 'deaf', description: 'Never returns.', inputSchema: any, inputJsonSchema: {}, effects: 'read', ...more,
  execute: () => new Promise((resolve) => setTimeout(resolve, 60_000, 'late')),
});
const agentWith = (more) => async ({ model }) => createAgent({ name: 'mine', model: await model(), tools: [deaf(more)] });
export default defineConfig({
  model: 'scripted:script.json',
  agents: { deaf: agentWith({}), whole: agentWith({ whenCancelled: 'finish', timeoutMs: 60_000 }) },
});
`;

test('Ctrl-C twice abandons a call that ignores its signal, reports it, and exits immediately', async () => {
  const own = home([[{ call: 'deaf' }], ['Done.']], { 'config/whoa/whoa.config.mjs': DEAF });
  const terminal = own.openTerminal();
  start(terminal, '--agent deaf');
  await terminal.waitFor(/▸ deaf/);
  for (const hint of [/interrupting deaf, 2 s at most · Ctrl-C again kills it/, /exit:130/]) {
    terminal.press('C-c');
    await terminal.waitFor(hint);
  }
  expect(terminal.see()).toMatch(/1 abandoned[\s\S]*kill: nothing more is waited for[\s\S]*deaf abandoned/);
});

test('Ctrl-C twice exits even while a call may not be cut', async () => {
  const own = home([[{ call: 'deaf' }], ['Done.']], { 'config/whoa/whoa.config.mjs': DEAF });
  const terminal = own.openTerminal();
  start(terminal, '--agent whole');
  await terminal.waitFor(/▸ deaf/);
  terminal.press('C-c');
  await terminal.waitFor(/must not be interrupted: waiting, at most .* · Ctrl-C again exits without it/);
  terminal.press('C-c');
  const seen = await terminal.waitFor(/exit:130/);
  expect(seen).toMatch(/whoa exits in 3 s at most · Ctrl-C again exits now[\s\S]*Left while deaf has not ended/);
  expect(JSON.parse(own.whoa(['tasks', '--json']).stdout)).toMatchObject({ status: 'cancelling' });
});

test.runIf(isNight)(
  'a cancel from another terminal stops the run, which prints the report and exits with 130',
  async () => {
    const own = home(SLOW);
    const run = startHere(own);
    const [, id = ''] = /whoa cancel (\S+)/.exec(await run.waitFor(/bash: begun/))!;
    const listed = await own.main(['tasks']);
    expect(listed.stdout).toMatch(/TOOK +TURNS +CALLS +TOKENS +TITLE\n.*running +assistant .* s +1 +1 +Is all/);
    const cancel = await own.main(['cancel', id, '--mode', 'now', '--reason', 'wrong branch']);
    expect(cancel.stdout).toMatch(/is being stopped[\s\S]*Stopped after .* \(user: wrong branch[\s\S]*settled/);
    expect(cancel.status).toBe(0);
    expect((await run.ended).status).toBe(130);
    expect(run.see()).toMatch(
      /Stopped after .* \(user: wrong branch, by \S+, via whoa cancel\); nothing was left behind/,
    );
    expect(alive(own)).toEqual([]);
    expectEnd(await own.main(['cancel', id]), {
      status: 1,
      stdout: 'already ended: cancelled',
    });
    expectEnd(await own.main(['watch', id]), { status: 130, stdout: 'bash interrupted' });
  },
);

test.runIf(isNight)('one call is cancelled from another terminal and the run continues', async () => {
  const own = home(SLOW);
  const run = startHere(own);
  const [, id = ''] = /whoa cancel (\S+)/.exec(await run.waitFor(/bash: begun/))!;
  const watcher = own.start(['watch', id], { terminal: SIZE });
  const [, call = ''] = /▸ bash .*\((\S+)\)/.exec(await watcher.waitFor(/▸ bash .*\)/))!;
  expect(await own.main(['cancel', id, '--call', 'none'])).toMatchObject({ status: 1 });
  expect((await own.main(['cancel', id, '--call', call])).stdout).toContain('is interrupted; the task continues');
  expect(await run.ended).toMatchObject({ status: 0, stdout: expect.stringContaining('All is well.') as string });
  expect((await watcher.ended).status).toBe(0);
  expect(watcher.see()).toMatch(/bash interrupted[\s\S]*All is well\.[\s\S]*success · \d+ tokens in, \d+ out/);
});

test('a command needs approval before it runs, and the reason for a no reaches the model', async () => {
  const call = (command: string) => ({ call: 'bash', input: { command } });
  const own = home([[call('echo one >> log')], [call('echo two >> log')], [call('echo three >> log')], ['Done.']]);
  const run = startHere(own, []);
  await run.waitFor(/echo one[\s\S]*why not:$/);
  run.type('y\n');
  await run.waitFor(/echo two[\s\S]*why not:$/);
  run.type('use printf\n');
  expect(await run.waitFor(/echo three[\s\S]*why not:$/)).toContain('denied: use printf');
  run.signal('SIGINT');
  expect((await run.ended).status).toBe(130);
  // The report shows that first, and then how each call ended.
  expect(run.see()).toMatch(/nothing was left behind[\s\S]*bash not started/);
  expect(own.folder.read('log')).toBe('one\n');
});

test('lines and partial lines that were typed before a question do not answer it', async () => {
  const call = (command: string) => ({ call: 'bash', input: { command } });
  const own = home([
    ['Thinking. ', { waitMs: 1_500 }, call('touch one')],
    [call('touch two; sleep 1')],
    [call('touch three')],
    ['Done.'],
  ]);
  const terminal = own.openTerminal();
  start(terminal, '');
  await terminal.waitFor(/Thinking/);
  terminal.type('y\ny');
  await terminal.waitFor(/touch one[\s\S]*why not:$/);
  terminal.press('Enter');
  await terminal.waitFor(/touch two[\s\S]*why not:$/);
  // Twice for one question, and again while the command runs: none of these keys may answer the next question.
  terminal.type('y\ny\n');
  await terminal.waitFor(/▸ bash touch two/);
  terminal.type('y\n');
  await terminal.waitFor(/touch three[\s\S]*why not:$/);
  terminal.press('Enter');
  await terminal.waitFor(/exit:0/);
  expect(own.folder.list().filter((name) => /^(one|two|three)$/.test(name))).toEqual(['two']);
});

test('text that is typed while a run works is not shown, and a background run continues', async () => {
  const own = home([
    [{ call: 'bash', input: { command: 'echo begun; until [ -e go ]; do sleep 0.1; done' } }],
    ['Done.'],
  ]);
  const terminal = own.openTerminal();
  start(terminal);
  await terminal.waitFor(/bash: begun · \d s/);
  terminal.type('garbled\ngarbled');
  await terminal.waitFor(/bash: begun · [2-9] s/);
  own.folder.write('go', '');
  expect(await terminal.waitFor(/exit:0/)).not.toContain('garbled');
  terminal.type('clear; whoa run --yes --sandbox none --model scripted:script.json Go. > out & wait; echo "$?:exit"\n');
  await terminal.waitFor(/0:exit/);
  expect(own.folder.read('out')).toBe('Done.\n');
});

test('Ctrl-Z suspends a run, its watchdog leaves it alone, and it continues in the foreground', async () => {
  const command = 'echo begun; until [ -e go ]; do echo tick >> ticks; sleep 0.1; done';
  const own = home([[{ call: 'bash', input: { command } }], ['Done.']]);
  const countTicks = (): number => own.folder.read('ticks').length / 'tick\n'.length;
  const terminal = own.openTerminal();
  start(terminal);
  await terminal.waitFor(/bash: begun/);
  terminal.press('C-z');
  await terminal.waitFor(/Stopped/);
  // The watchdog looks once a second, and ends what runs at the second look.
  const before = countTicks();
  await expect.poll(() => countTicks() - before, { timeout: 30_000 }).toBeGreaterThan(30);
  own.folder.write('go', '');
  terminal.type('fg; echo "exit:$?"\n');
  await terminal.waitFor(/Done\.[\s\S]*exit:0/);
});

test("--yes where no sandbox works asks once, in words, and takes no 'yes' that was typed before", async () => {
  // In a home folder no sandbox works.
  const own = home([[{ call: 'bash', input: { command: 'touch ran' } }], ['Done.']]);
  const terminal = own.openTerminal();
  terminal.type("whoa run --yes --model scripted:script.json 'Go.'; echo exit:$?\nyes\nyes\nye");
  const seen = await terminal.waitFor(/Type 'yes' to continue:$/);
  expect(seen).toMatch(/sandbox none: commands can access everything that you can \(no other works here:/);
  terminal.type('s\n');
  expect(await terminal.waitFor(/exit:2/)).toContain("not allowed without a sandbox; remove --yes, or add '--sandbox");
  expect(own.folder.list()).not.toContain('ran');
  terminal.type("clear; whoa run --yes --model scripted:script.json 'Go.'; echo exit:$?\n");
  await terminal.waitFor(/Type 'yes' to continue:$/);
  terminal.type('yes\n');
  await terminal.waitFor(/exit:0/);
  expect(own.folder.list()).toContain('ran');
});

test('an edit needs approval with a diff, page by page, and a file that changed meanwhile is not touched', async () => {
  const lines = (word: string) => Array.from({ length: 60 }, (_, i) => `${word} ${i}`).join('\n');
  const call = { call: 'write', input: { path: 'a.txt', content: `${lines('new')}\n` } };
  const own = home([[call], ['Done.']]);
  own.folder.write('a.txt', 'old\n');
  const run = startHere(own, []);
  await run.waitFor(/changes .*a\.txt[\s\S]*-old[\s\S]*\+new 0[\s\S]*page 1 of 2[^\n]*$/);
  run.type('y\n');
  await run.waitFor(/\+new 59[\s\S]*always means: every write of [\s\S]*a\.txt[\s\S]*why not:$/);
  own.folder.write('a.txt', 'older\n');
  run.type('y\n');
  expect((await run.ended).status).toBe(0);
  expect(run.see()).toMatch(/changed after the change was shown/);
  expect(own.folder.read('a.txt')).toBe('older\n');
});

test('events of other calls are shown after the question is answered, not over it', async () => {
  const calls = [
    { call: 'write', input: { path: 'a.txt', content: 'x' } },
    { call: 'ls', input: {} },
  ];
  const own = home([calls, ['Done.']]);
  const terminal = own.openTerminal();
  start(terminal, '');
  await terminal.waitFor(/why not:$/);
  // A second and more: neither the end of the other call nor a sign of life may touch the question.
  expect(own.whoa(['tasks']).stdout).toContain('asking');
  expect(terminal.see()).toMatch(/│ {3}\+x\n[\s\S]*│ path: a\.txt\n.*\n.*why not:$/);
  terminal.type('y\n');
  expect(await terminal.waitFor(/exit:0/)).toMatch(/why not: y\n[\s\S]*✔ ls[\s\S]*✔ write/);
});

test('closing the terminal stops the run and everything it started', async () => {
  const own = home(SLOW);
  const terminal = own.openTerminal();
  start(terminal);
  const [, id = ''] = /whoa cancel (\S+)/.exec(await terminal.waitFor(/bash: begun/))!;
  terminal.close();
  expectEnd(await own.main(['watch', id]), {
    status: 130,
    // Either the signal comes first, or the terminal that rejects output.
    stdout: '(disconnect: ',
  });
  await expect.poll(() => alive(own)).toEqual([]);
});

test('a call without a terminal is denied with a text that explains why', async () => {
  const own = home([[{ call: 'bash', input: { command: 'touch made' } }], ['Fine.']]);
  const { status, stdout, stderr } = await own.main(['run', '--model', 'scripted:script.json', 'Make it']);
  expect({ status, stdout }).toEqual({ status: 0, stdout: 'Fine.\n' });
  expect(stderr).toContain('standard input is not a terminal');
  expect(stderr).not.toContain('\x1b');
  expect(existsSync(own.folder.at('made'))).toBe(false);
});

test('a failed run exits with 1 and prints the reason; a prompt may come from a pipe', async () => {
  const own = home([['So ', { fail: 'the model is on fire' }]]);
  const failed = await own.main(['run', '--model', 'scripted:script.json'], { input: 'Is it?' });
  expectEnd(failed, { status: 1, stdout: 'So \n', stderr: 'the model is on fire' });
});

test('the output and changes of calls are shown below them: the end or all of it, and where long output is stored', async () => {
  const script = [
    [{ call: 'bash', input: { command: "printf 'line %s\\n' $(seq 30); exit 3" } }],
    [{ call: 'write', input: { path: 'a.txt', content: 'one\n2\n' } }],
    [{ call: 'grep', input: { pattern: 'one', glob: '*.txt' } }],
    [{ call: 'bash', input: { command: 'seq 100000' } }],
    ['Done.'],
  ];
  const own = home(script);
  own.folder.write('a.txt', 'one\ntwo\n');
  const run = startHere(own, ALONE, { columns: 110, rows: 60 });
  const { status, stderr } = await run.ended;
  expect(status).toBe(0);
  const seen = run.see();
  expect(seen).toMatch(/✘ bash .*: exit code 3\n {2}│ … 22 more lines; --output full shows them\n {2}│ line 23\n/);
  expect(seen).toMatch(/✔ write .*\n {2}│ changed a\.txt \+1 -1\n {2}│ 1 {3}one\n {2}│ 2 - two\n {2}│ 2 \+ 2\n/);
  expect(seen).toMatch(/✔ grep .*\n {2}│ 1 match of one in 1 file\n {2}│ a\.txt:1: one\n/);
  const [, log = ''] = /all of it: (\S+)/.exec(seen)!;
  // It has ended, so there is nothing to undo.
  expect(readdirSync(own.folder.at('state/whoa/undo'))).toEqual([]);
  expect(readFileSync(log, 'utf8')).toMatch(/^1\n2\n[\s\S]*\n100000\n$/);
  expect(stderr).toMatch(/\[31m\S*2 - two[\s\S]*\[32m\S*2 \+ 2/);
  const watched = (await own.main(['watch', 't-', '--output', 'full'])).stdout;
  expect(watched).toMatch(/│ line 1\n {2}│ line 2\n[\s\S]*│ 2 \+ 2\n/);
  expect((await own.main(['watch', 't-'])).stdout).toContain('… 22 more lines');
});

/** The result line of a run. */
function parseResult({ stdout }: End): Record<string, unknown> {
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<string, unknown>;
}

test('piped input is added to the prompt, and --cwd is the folder of the agent', async () => {
  const own = home([[{ call: 'ls', input: {} }], ['Fine.']]);
  own.folder.write('site/page.html', '');
  await own.main(['run', '--cwd', 'site', '--model', 'scripted:../script.json', 'review this'], {
    input: '+ a line\n',
  });
  const { inputs } = JSON.parse((await own.main(['tasks', '--json'])).stdout) as { inputs: unknown };
  expect(inputs).toEqual(['review this\n\n+ a line']);
  expect((await own.main(['watch', 't-', '--json'])).stdout).toContain('page.html');
});

test('--timeout and the budgets stop a run that needs more, and the output shows which', async () => {
  const own = home([[{ call: 'ls', input: {} }]], {
    'slow.json': JSON.stringify([[{ waitMs: 300_000 }]]),
  });
  const run = async (...args: string[]) =>
    parseResult(await own.main(['run', '--json', '--model', 'scripted:script.json', ...args]));
  expect(await run('--max-turns', '2', 'Go.')).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'budget', message: 'the run reached its maxTurns of 2' },
  });
  expect(await run('--max-calls', '3', 'Go.')).toMatchObject({
    reason: { message: 'the run reached its maxCalls of 3' },
  });
  expect(await run('--max-tokens', '1', 'Go.')).toMatchObject({
    reason: { message: 'the run reached its maxModelTokens of 1' },
  });
  expect(await run('--model', 'scripted:slow.json', '--timeout', '300ms', 'Go.')).toMatchObject({
    status: 'cancelled',
    reason: { kind: 'deadline', message: 'the run took longer than 300 ms' },
  });
});

test('--json prints one object per line, and the result last', async () => {
  const own = home([['Fine.']]);
  const { stdout, stderr } = await own.main(['run', '--json', '--model', 'scripted:script.json', 'How?']);
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.at(-1)).toMatchObject({ type: 'result', status: 'success', answer: 'Fine.' });
  expect(stderr).toBe('');
  for (const command of ['tasks', 'doctor']) {
    for (const line of (await own.main([command, '--json'])).stdout.trim().split('\n')) JSON.parse(line);
  }
  expect(JSON.parse((await own.main(['run', '--json', 'x'])).stdout.trim().split('\n').at(-1)!)).toMatchObject({
    type: 'error',
    code: 'AUTH_REQUIRED',
  });
});

test('closing the output ends the run', async () => {
  const own = home([['One.\n', { waitMs: 200 }, 'Two.\n', { waitMs: 200 }, 'Three.\n', { waitMs: 300_000 }]]);
  const [file = '', ...args] = BIN;
  const child = spawn(file, [...args, 'run', '--model', 'scripted:script.json', 'Count'], {
    cwd: own.folder.path,
    env: own.env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  child.stdout.once('data', () => child.stdout.destroy());
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(130);
});

test('a model behind HTTP is asked, and its connection is closed by Ctrl-C', async () => {
  const provider = await startLoopbackProvider({
    script: [{ parts: [{ text: ['Once upon ', { stall: true }, 'a time'] }] }],
  });
  onTestFinished(() => provider.close());
  const own = home([]);
  const run = own.start(['run', '--model', `compatible:${provider.url}:tiny:1b`, 'A story']);
  await run.waitFor(/Once upon/);
  run.signal('SIGINT');
  expect(await run.ended).toMatchObject({
    status: 130,
    stderr: expect.stringMatching(/reply closed after 10 characters/) as string,
  });
  await provider.waitForIdle();
  expect(provider.requests).toHaveLength(1);
});

test('--continue remembers the last run in this folder, or that of a task, and stopped ones too', async () => {
  const provider = await startLoopbackProvider({
    script: [
      { parts: [{ text: ['My name is ', { stall: true }, 'never said'] }] },
      { parts: [{ text: ['Ann, I said.'] }] },
      { parts: [{ text: ['Still Ann.'] }] },
    ],
  });
  onTestFinished(() => provider.close());
  const own = home([]);
  const model = ['--model', `compatible:${provider.url}:tiny:1b`];
  const first = own.start(['run', ...model, 'What is your name?']);
  await first.waitFor(/My name is/);
  first.signal('SIGINT');
  expect((await first.ended).status).toBe(130);
  const second = await own.main(['run', '--continue', ...model, 'Your name?']);
  expect(second).toMatchObject({ status: 0, stdout: 'Ann, I said.\n' });
  const [, id = ''] = /whoa cancel (\S+)/.exec(second.stderr)!;
  const asked = JSON.stringify(provider.requests[1]);
  for (const words of ['What is your name?', 'My name is ', 'Your name?']) expect(asked).toContain(words);
  own.folder.write('other/file', '');
  expectEnd(await own.main(['run', '--cwd', 'other', '--continue', ...model, 'x']), {
    status: 2,
    stderr: '--continue: no recent run in this folder',
  });
  expectEnd(await own.main(['run', '--cwd', 'other', '--continue', id, ...model, 'And now?']), {
    status: 0,
    stdout: 'Still Ann.',
  });
  expect(JSON.stringify(provider.requests[2])).toContain('Ann, I said.');
});

test('a conversation whose run has not ended is not continued', async () => {
  const own = home(SLOW);
  const run = startHere(own);
  await run.waitFor(/bash: begun/);
  const { status, stderr } = await own.main(['run', '--continue', '--model', 'scripted:script.json', 'And?']);
  expect(stderr).toMatch(/--continue: t-\S+ of this conversation has not ended; use 'whoa steer' or 'whoa cancel'/);
  expect(status).toBe(2);
  run.signal('SIGINT');
  run.signal('SIGINT');
  expect((await run.ended).status).toBe(130);
});

test('a missing key names its variable; a configuration in the folder is not loaded', async () => {
  const evil = `import { writeFileSync } from 'node:fs'; writeFileSync('loaded', ''); export default {};`;
  const own = home([['Fine.']], {
    'whoa.config.ts': evil,
    'config/own.ts': evil.replace('export', 'const n: number = 1; export'),
  });
  for (const [model, variable] of [
    ['anthropic:x', 'ANTHROPIC_API_KEY'],
    ['openai:x', 'OPENAI_API_KEY'],
  ] as const) {
    expectEnd(await own.main(['run', '--model', model, 'hi']), {
      status: 2,
      stderr: `set ${variable}`,
    });
  }
  expect(own.whoa(['run', '--model', 'scripted:script.json', 'hi'])).toMatchObject({ status: 0 });
  expect(existsSync(own.folder.at('loaded'))).toBe(false);
  own.whoa(['run', '--config', 'config/own.ts', '--model', 'scripted:script.json', 'hi']);
  expect(existsSync(own.folder.at('loaded'))).toBe(true);
});

test('a run whose process was killed is lost until a cancel settles it', async () => {
  const { own, id, watch } = killed;
  expectEnd(await watch.ended, { status: 1, stdout: "lost: the process that ran it died; 'whoa cancel' settles it" });
  expectEnd(await own.main(['cancel', id]), {
    status: 0,
    stdout: 'bash abandoned, its outcome is unknown',
  });
  expect((await own.main(['tasks'])).stdout).toMatch(/cancelled +assistant/);
  expect(alive(own)).toEqual([]);
});

// A chat on a real terminal: several turns, steering, stopping, leaving.
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { expect, onTestFinished, test } from 'vitest';
import { isNight } from '../night.ts';
import { measureSlowness } from '../slowness.ts';
import { createHome, type Home, type Terminal } from './terminal.ts';

const WAIT = { call: 'bash', input: { command: 'echo begun; until [ -e go ]; do sleep 0.1; done' } };

function home(script: unknown): Home {
  const made = createHome({ 'script.json': JSON.stringify(script) });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Starts a chat and waits for its prompt. */
async function start(terminal: Terminal, options = '--yes', model = 'scripted:script.json'): Promise<void> {
  terminal.type(`whoa chat --model ${model} --sandbox none ${options}; echo "exit:$?"\n`);
  await terminal.waitFor(/Ctrl-D leaves[\s\S]*›$/);
}

interface Told {
  readonly status: string;
  readonly conversation: string;
  readonly inputs: unknown;
}

function readTasks(own: Home): Told[] {
  const lines = own.whoa(['tasks', '--json']).stdout.trim().split('\n');
  return lines.map((line) => JSON.parse(line) as Told);
}

test('several turns share one history, which a later chat continues', async () => {
  const texts = ['I am Ann.', 'Ann, I said.', 'Still Ann.'];
  const provider = await startLoopbackProvider({ script: texts.map((text) => ({ parts: [{ text: [text] }] })) });
  onTestFinished(() => provider.close());
  const own = home([]);
  const terminal = own.openTerminal();
  const model = `compatible:${provider.url}:tiny:1b`;
  await start(terminal, '', model);
  terminal.type('Who are you?\n');
  await terminal.waitFor(/› Who are you\?\n[\s\S]*I am Ann\.\n✔ .*\n›$/);
  terminal.type('Who?\n');
  await terminal.waitFor(/Ann, I said\.\n✔ .*\n›$/);
  terminal.press('C-d');
  expect(await terminal.waitFor(/exit:0/)).toContain("'whoa chat --continue' continues this conversation.");
  terminal.type('clear\n');
  await start(terminal, '--continue', model);
  expect(terminal.see()).toContain('The conversation so far has 4 messages.');
  terminal.type('And now?\n');
  await terminal.waitFor(/Still Ann\.\n✔ .*\n›$/);
  const asked = JSON.stringify(provider.requests[2]);
  for (const words of ['Who are you?', 'I am Ann.', 'Who?', 'Ann, I said.', 'And now?']) expect(asked).toContain(words);
  terminal.press('C-c');
  await terminal.waitFor(/Ctrl-C again leaves/);
  terminal.press('C-c');
  await terminal.waitFor(/exit:0/);
});

test('text that is typed while a run works is shown separately, and steers the run', async () => {
  const own = home([[WAIT], ['All is well.']]);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.type('Go.\n');
  await terminal.waitFor(/bash: begun/);
  terminal.type('be bri');
  await terminal.waitFor(/\n› be bri$/);
  terminal.press('BSpace');
  terminal.type('ief');
  terminal.press('Enter');
  await terminal.waitFor(/\n› be brief\n/);
  own.folder.write('go', '');
  expect(await terminal.waitFor(/All is well\.\n✔ .*\n›$/)).toMatch(/✔ bash .*\n[\s\S]*» be brief\n/);
  const tasks = readTasks(own);
  expect(tasks.filter(({ status }) => status === 'success')).toMatchObject([{ inputs: ['Go.'] }]);
  expect(new Set(tasks.map(({ conversation }) => conversation)).size).toBe(1);
  expect((await own.main(['tasks'])).stdout).toMatch(/ steered .* be brief\n/);
});

test.each(['Escape', 'C-c'])('%s stops the run and not the chat', async (key) => {
  const own = home([[WAIT], ['Once more.']]);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.type('Go.\n');
  await terminal.waitFor(/bash: begun/);
  terminal.press(key);
  await terminal.waitFor(/interrupting bash, 2 s at most · Ctrl-C again kills it/);
  terminal.type('Never mind.\n');
  const seen = await terminal.waitFor(/Once more\.\n✔ .*\n›$/);
  expect(seen).toMatch(/Stopped after .* \(user, by \S+, via Ctrl-C\); nothing was left behind/);
  expect(readTasks(own).map(({ status }) => status)).toEqual(['success', 'cancelled']);
});

test('a question during typing keeps the typed text, which does not answer it', async () => {
  const own = home([
    ['Let me see. ', { waitMs: 4_000 }, { call: 'bash', input: { command: 'touch made' } }],
    ['Done.'],
  ]);
  const terminal = own.openTerminal();
  await start(terminal, '');
  terminal.type('Go.\n');
  await terminal.waitFor(/Let me see/);
  terminal.type('y');
  await terminal.waitFor(/command: touch made[\s\S]*why not:$/);
  terminal.press('Enter');
  await terminal.waitFor(/Done\.\n✔ .*\n› y$/);
  expect(own.folder.list()).not.toContain('made');
  terminal.press('C-u');
  await terminal.waitFor(/\n›$/);
  terminal.press('C-d');
  await terminal.waitFor(/exit:0/);
});

test.runIf(isNight)('a cancel from another terminal stops the run and not the chat', async () => {
  const own = home([[WAIT], ['Once more.']]);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.type('Go.\n');
  const [, id = ''] = /whoa cancel (\S+)/.exec(await terminal.waitFor(/bash: begun/))!;
  expect(own.whoa(['cancel', id, '--mode', 'now']).status).toBe(0);
  await terminal.waitFor(/via whoa cancel[\s\S]*\n›$/);
  terminal.type('Again.\n');
  await terminal.waitFor(/Once more\.\n✔ .*\n›$/);
});

test.runIf(isNight)('closing the terminal stops the run', async () => {
  const own = home([[WAIT], ['Once more.']]);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.type('Go.\n');
  const [, id = ''] = /whoa cancel (\S+)/.exec(await terminal.waitFor(/bash: begun/))!;
  terminal.close();
  const { status, stdout } = own.whoa(['watch', id]);
  expect(stdout).toContain('(disconnect: ');
  expect(status).toBe(130);
});

const DEAF = `
import { createAgent, defineConfig, defineTool } from 'whoa';
const any = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const deaf = defineTool({
  name: 'deaf', description: 'Never returns.', inputSchema: any, inputJsonSchema: {}, effects: 'read',
  execute: () => new Promise((resolve) => setTimeout(resolve, 60_000, 'late')),
});
export default defineConfig({
  agents: { mine: async ({ model }) => createAgent({ name: 'mine', model: await model(), tools: [deaf] }) },
});
`;

test.runIf(isNight)(
  'Ctrl-C twice abandons a call that ignores its signal, reports it, and the chat continues',
  async () => {
    const own = home([[{ call: 'deaf' }], ['Once more.']]);
    own.folder.write('config/whoa/whoa.config.mjs', DEAF);
    const terminal = own.openTerminal();
    await start(terminal);
    terminal.type('Go.\n');
    await terminal.waitFor(/▸ deaf/);
    for (const hint of [/interrupting deaf, 2 s at most/, /settled\n›$/]) {
      terminal.press('C-c');
      await terminal.waitFor(hint);
    }
    expect(terminal.see()).toMatch(/1 abandoned[\s\S]*deaf abandoned/);
    terminal.type('Again.\n');
    await terminal.waitFor(/Once more\.\n✔ .*\n›$/);
  },
);

test('a paste is one message, and hostile characters in it are shown and not obeyed', async () => {
  const own = home([['Fine.']]);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.paste('one\ntwo \u202e three');
  await terminal.waitFor(/› one⏎two <U\+202E> three$/);
  terminal.press('Enter');
  await terminal.waitFor(/› one\n {2}two <U\+202E> three\n[\s\S]*Fine\.\n✔ .*\n›$/);
  expect(readTasks(own)).toMatchObject([{ inputs: ['one\ntwo \u202e three'] }]);
});

test('the line is edited with the usual keys, below the output, and Alt-Enter adds a line', async () => {
  const own = home([['One.\n', { waitMs: 1_000 }, 'Two.\n', { waitMs: 1_000 }, 'Three.\n'], ['Fine.']]);
  const terminal = own.openTerminal({ columns: 80, rows: 40 });
  await start(terminal);
  terminal.type('Go.\n');
  await terminal.waitFor(/\nOne\.$/);
  terminal.type('wo lines, 日本');
  terminal.press('Home');
  terminal.type('t');
  terminal.press('End', 'BSpace', 'M-Enter');
  terminal.type('x'.repeat(50));
  terminal.press('C-a', 'M-f');
  await terminal.waitFor(/Three\.\n✔ .*\n› two lines, 日⏎x*$/);
  terminal.press('C-w');
  terminal.type('Two ');
  terminal.press('Enter');
  await terminal.waitFor(/Fine\.\n✔ .*\n›$/);
  expect(readTasks(own)).toMatchObject([{ inputs: [`Two lines, 日\n${'x'.repeat(50)}`] }, { inputs: ['Go.'] }]);
  terminal.press('Up', 'C-u');
  terminal.type('Bye.');
  await terminal.waitFor(/\n› Bye\.$/);
});

test('Esc at a question stops the run, and is not an answer', async () => {
  const own = home([[{ call: 'bash', input: { command: 'touch made' } }], ['Once more.']]);
  const terminal = own.openTerminal();
  await start(terminal, '');
  terminal.type('Go.\n');
  await terminal.waitFor(/touch made[\s\S]*why not:$/);
  terminal.type('hm');
  terminal.press('Escape');
  const seen = await terminal.waitFor(/Stopped after .* \(user, by \S+, via Ctrl-C\)[\s\S]*\n›$/);
  expect(seen).toMatch(/why not: hm\n/);
  expect(seen).not.toContain('denied');
  terminal.type('Again.\n');
  await terminal.waitFor(/Once more\.\n✔ .*\n›$/);
  expect(readTasks(own).map(({ status }) => status)).toEqual(['success', 'cancelled']);
  expect(own.folder.list()).not.toContain('made');
});

/** A call that measures the paste: from its first character until the stop reaches the call. */
const MEASURED = `
import { writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createAgent, defineConfig, defineTool } from 'whoa';
const any = { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } };
const measure = (signal) => new Promise((resolve) => {
  const delay = monitorEventLoopDelay({ resolution: 5 });
  process.stdin.once('data', () => {
    const [cpu, since] = [process.cpuUsage(), performance.now()];
    delay.enable();
    signal.addEventListener('abort', () => {
      const { user, system } = process.cpuUsage(cpu);
      const measured = { cpuMs: (user + system) / 1_000, blockedMs: delay.max / 1e6, tookMs: performance.now() - since };
      writeFileSync('measured.json', JSON.stringify(measured));
      resolve('stopped');
    });
  });
});
const work = defineTool({
  name: 'work', description: 'Works.', inputSchema: any, inputJsonSchema: {}, effects: 'read',
  execute: (_, { signal }) => measure(signal),
});
export default defineConfig({
  stopMode: 'now',
  agents: { mine: async ({ model }) => createAgent({ name: 'mine', model: await model(), tools: [work] }) },
});
`;

test('a paste of 100 KB while the agent works delays neither Esc nor anything else, and is sent whole', async () => {
  const own = home([[{ call: 'work' }], ['Fine.']]);
  own.folder.write('config/whoa/whoa.config.mjs', MEASURED);
  const terminal = own.openTerminal();
  await start(terminal);
  terminal.type('Go.\n');
  await terminal.waitFor(/▸ work/);
  const text = Array.from({ length: 2_000 }, (_, line) => `line ${line} ${'x'.repeat(40)}`).join('\n');
  terminal.paste(text);
  terminal.press('Escape');
  await terminal.waitFor(/Stopped after[\s\S]*\n› \[paste 1: 2,000 lines\]$/);
  const { cpuMs, tookMs } = JSON.parse(own.folder.read('measured.json')) as Record<'cpuMs' | 'tookMs', number>;
  // Other programs share the machine, so wall-clock time would be less precise.
  expect(cpuMs).toBeLessThan(200);
  expect(tookMs).toBeLessThan(5_000 * measureSlowness());
  terminal.press('Enter');
  await terminal.waitFor(/› \[paste 1: 2,000 lines\]\n[\s\S]*Fine\.\n✔ .*\n›$/);
  const [sent, stopped] = readTasks(own);
  expect(sent).toMatchObject({ status: 'success', inputs: [text] });
  expect(stopped).toMatchObject({ status: 'cancelled' });
});

test('a chat is compacted before the context window is full', async () => {
  const replies = ['All of it.', 'They talked about ships.', 'Ships.'];
  const provider = await startLoopbackProvider({ script: replies.map((text) => ({ parts: [{ text: [text] }] })) });
  onTestFinished(() => provider.close());
  const own = home([]);
  own.folder.write('config/whoa/whoa.config.mjs', 'export default { contextTokens: 1_000 };');
  const terminal = own.openTerminal();
  await start(terminal, '', `compatible:${provider.url}:tiny:1b`);
  terminal.paste('About ships. '.repeat(200));
  terminal.press('Enter');
  await terminal.waitFor(/All of it\.\n✔ .*\n›$/);
  terminal.type('What was it about?\n');
  expect(await terminal.waitFor(/Ships\.\n✔ .*\n›$/)).toContain('… 3 messages were compacted to 3');
  const [, summary, last] = provider.requests.map((request) => JSON.stringify(request));
  expect(summary).toContain('User: About ships.');
  expect(last).toContain('They talked about ships.');
  expect(last).toContain('What was it about?');
  expect(last).not.toContain('About ships. About ships.');
});

test('`whoa chat` requires a terminal', () => {
  const { status, stderr } = home([['Fine.']]).whoa(['chat', '--model', 'scripted:script.json']);
  expect(stderr).toBe('whoa chat: a chat needs a terminal; without one, use: whoa run "prompt"\n');
  expect(status).toBe(2);
});

// Every hostile string through every field of every command, on a terminal: it interprets nothing but our own styles.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { COMMANDS } from '../../packages/whoa/src/command-table.ts';
import { hostileStrings } from '../hostile-strings.ts';
import { findObeyed } from '../hostile-text.ts';
import { forChange, isNight } from '../night.ts';
import { until } from '../promises/fixture.ts';
import { BIN, createHome, type Home } from './terminal.ts';

/** Units test all of them for every change. */
const TEXTS = forChange(hostileStrings, (_, index) => index % 4 === 0);
const MAX_ARGUMENT_TEXT = 1_000;
/** Arguments cannot hold NUL, a lone half of a character becomes another one, and Linux takes 128 KiB at most. */
const ARGUMENT = TEXTS.filter((text) => text.length < MAX_ARGUMENT_TEXT)
  .join(' ')
  .replaceAll('\0', '')
  .toWellFormed();
/** Short enough for the name of a file; all of them in turn would be too long. */
const PATH = ARGUMENT.replaceAll('/', '').slice(0, 60);

/** Runs many commands in one process. */
const MANY = join(import.meta.dirname, 'wrong-commands.ts');

function home(script: unknown, files: Readonly<Record<string, string>> = {}): Home {
  const made = createHome({ 'script.json': JSON.stringify(script), ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Runs the command in this process, for a terminal; returns everything that the terminal would get. */
async function here(own: Home, ...args: string[]): Promise<string> {
  const command = own.start(args, { terminal: { columns: 120, rows: 40 } });
  await command.ended;
  return command.raw();
}

/** Runs the command on a real terminal; returns everything that the terminal got. */
function onTerminal({ folder, env }: Home, args: readonly string[], program: readonly string[] = BIN): string {
  const quoted = [...program, ...args].map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`).join(' ');
  folder.write('command.sh', `stty -echo columns 120; ${quoted}`);
  const { stdout } = spawnSync('script', ['-qec', 'bash command.sh', '/dev/null'], {
    cwd: folder.path,
    env: { ...env, TERM: 'xterm-256color', FORCE_COLOR: '1' },
    input: '',
    encoding: 'utf8',
    maxBuffer: 100_000_000,
  });
  return stdout;
}

function expectInert(output: string, ...words: string[]): void {
  expect(output).not.toBe('');
  expect([...new Set(findObeyed(output))]).toEqual([]);
  for (const word of words) expect(output).toContain(word);
}

test('names of tools, inputs, results, words and errors of a model: run, watch, tasks', async () => {
  const calls = TEXTS.map((text) => ({ call: text, input: { command: text, path: text } }));
  const known = TEXTS.map((text) => ({ call: 'read', input: { path: text } }));
  const own = home([[...TEXTS, ...calls], known, [{ fail: TEXTS.join(' ') }]]);
  const prompt = ARGUMENT.slice(0, 20_000);
  expectInert(
    onTerminal(own, ['run', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json', '--', prompt]),
    '<U+001B>',
    '✘',
  );
  const tasks = await here(own, 'tasks');
  expectInert(tasks, 'failed');
  const id = /t-[\w-]+/.exec(tasks)![0];
  expectInert(await here(own, 'watch', id), '<U+001B>', '✘');
  expectInert(await here(own, 'watch', id, '--json'), String.raw`\u001b`);
  expectInert(await here(own, 'tasks', '--json'), String.raw`\u001b`);
});

test('the reason of a cancel: cancel, and the run it stops', async () => {
  const own = home([[{ call: 'bash', input: { command: 'echo begun; sleep 300' } }]]);
  const terminal = own.openTerminal();
  terminal.type("whoa run --yes --sandbox none --model scripted:script.json 'Go.' 2>&1 | tee seen; echo exit:$?\n");
  await terminal.waitFor(/bash: begun|▸ bash/);
  const id = /t-[\w-]+/.exec((await own.main(['tasks'])).stdout)![0];
  const reason = `why ${ARGUMENT.slice(0, 20_000)}`;
  expectInert(await here(own, 'cancel', id, '--mode', 'now', '--reason', reason), 'Stopped after', '<U+001B>');
  await terminal.waitFor(/exit:\d/);
  expectInert(own.folder.read('seen'), 'Stopped after', '<U+001B>');
  expectInert(await here(own, 'watch', id), 'Stopped after', '<U+001B>');
  expectInert(await here(own, 'cancel', id), 'already ended');
});

test('a question and a steer: approve, watch, and the run that asks', async () => {
  const own = home([[{ call: 'bash', input: { command: TEXTS.join(' ') } }], ['Done.']]);
  const [first, second] = [own.openTerminal(), own.openTerminal()];
  for (const terminal of [first, second]) {
    await terminal.waitFor(/^\$$/);
    terminal.record();
  }
  first.type("whoa run --sandbox none --model scripted:script.json 'Go.'; echo exit:$?\n");
  await first.waitFor(/page 1 of/);
  const id = /t-[\w-]+/.exec((await own.main(['tasks'])).stdout)![0];
  second.type(`whoa approve ${id}\n`);
  await second.waitFor(/page 1 of/);
  expectInert(await here(own, 'approve', id, '--json'), String.raw`\u001b`);
  expectInert((await own.main(['approve', id])).stdout, '<U+001B>', 'answer it with');
  expectInert(await here(own, 'steer', id, '--', ARGUMENT.slice(0, 20_000)));
  // The message withdraws the question.
  await second.waitFor(/asks nothing now/);
  await first.waitFor(/exit:\d/);
  for (const terminal of [first, second]) expectInert(ownOnly(await terminal.recorded()), '<U+001B>');
  expectInert(await here(own, 'watch', id, '--output', 'full'), '<U+001B>', 'to answer: whoa approve');
});

/** A terminal's output, without the modes that shells and our line editor set. */
function ownOnly(output: string): string {
  return output.replaceAll(/\p{Cc}\[\?2004l\r(?!\p{Cc}\[K)/gu, '').replaceAll(/\[\?2004[hl]/g, '[0m');
}

test('hostile strings are harmless in a chat: replies, calls, pasted text, and the reason of a stop', async () => {
  const calls = TEXTS.slice(0, 300).map((text) => ({ call: text, input: { command: text } }));
  const own = home([[...TEXTS, ...calls], ['Once more.'], [{ waitMs: 300_000 }]]);
  const terminal = own.openTerminal();
  terminal.type('whoa chat --yes --sandbox none --model scripted:script.json; echo exit:$?\n');
  await terminal.waitFor(/›$/);
  terminal.record();
  // Pasted as a terminal does it: without escapes. Its clipboard is small.
  const some = TEXTS.filter((text, index) => index % 12 === 0 && text.length < 100).join(' ');
  terminal.paste(some.replaceAll('\u001b', '').replaceAll('\0', '').toWellFormed());
  terminal.press('Enter');
  await terminal.waitFor(/Once more\.\n✔ .*\n›$/);
  terminal.type('Again.\n');
  const running = async (): Promise<string> => (await own.main(['tasks', '--status', 'running'])).stdout;
  await until(async () => (await running()) !== '');
  const [id = ''] = /t-[\w-]+/.exec(await running()) ?? [];
  expect((await own.main(['cancel', id, '--mode', 'now', '--reason', ARGUMENT.slice(0, 10_000)])).status).toBe(0);
  await terminal.waitFor(/settled\n›$/);
  terminal.press('C-d');
  await terminal.waitFor(/exit:0/);
  expectInert(ownOnly(await terminal.recorded()), 'Stopped after', '<U+001B>', '<U+202E>');
});

/** Every option and argument of every command, with invalid values. */
const WRONG: readonly (readonly [string, ...string[]])[] = [
  ['a command', ARGUMENT],
  ['an option', `--${ARGUMENT}`],
  ['a value of a switch', 'run', `--yes=${ARGUMENT}`],
  ['too much', 'tasks', ARGUMENT],
  ['a second prompt', 'run', 'Go.', ARGUMENT],
  ['--model', 'run', '--sandbox', 'none', '--model', ARGUMENT, 'Go.'],
  ['--agent', 'run', '--sandbox', 'none', '--model', 'scripted:script.json', '--agent', ARGUMENT, 'Go.'],
  ['--sandbox', 'run', '--sandbox', ARGUMENT, 'Go.'],
  ['--cwd', 'run', '--cwd', PATH, 'Go.'],
  ['--timeout', 'run', '--timeout', ARGUMENT, 'Go.'],
  ['--max-turns', 'run', '--max-turns', ARGUMENT, 'Go.'],
  ['--max-calls', 'run', '--max-calls', ARGUMENT, 'Go.'],
  ['--max-tokens', 'run', '--max-tokens', ARGUMENT, 'Go.'],
  ['--output', 'run', '--output', ARGUMENT, 'Go.'],
  ['a script', 'run', '--sandbox', 'none', '--model', `scripted:${PATH}`, 'Go.'],
  ['an address', 'run', '--sandbox', 'none', '--model', `compatible:http://${ARGUMENT}`, 'Go.'],
  ['--config', 'run', '--config', PATH, 'Go.'],
  ['--status', 'tasks', '--status', ARGUMENT],
  ['--limit', 'tasks', '--limit', ARGUMENT],
  ['--conversation of tasks', 'tasks', '--conversation', ARGUMENT, '--limit', '0'],
  ['--tenant of tasks', 'tasks', '--tenant', ARGUMENT],
  ['--server of tasks', 'tasks', '--server', ARGUMENT],
  ['--config of tasks', 'tasks', '--config', PATH],
  ['--mode', 'cancel', 'x', '--mode', ARGUMENT],
  ['--call', 'cancel', 'x', '--call', ARGUMENT],
  ['--status of cancel', 'cancel', '--all', '--status', ARGUMENT],
  ['--agent of cancel', 'cancel', '--agent', ARGUMENT],
  ['--conversation of cancel', 'cancel', '--conversation', ARGUMENT],
  ['--tenant of cancel', 'cancel', 'x', '--tenant', ARGUMENT],
  ['--server of cancel', 'cancel', 'x', '--server', ARGUMENT],
  ['--config of cancel', 'cancel', 'x', '--config', PATH],
  ['a task to cancel', 'cancel', ARGUMENT],
  ['a task to watch', 'watch', ARGUMENT],
  ['--tenant of watch', 'watch', 'x', '--tenant', ARGUMENT],
  ['--output of watch', 'watch', 'x', '--output', ARGUMENT],
  ['--server of watch', 'watch', 'x', '--server', ARGUMENT],
  ['--config of watch', 'watch', 'x', '--config', PATH],
  ['a task to continue', 'run', '--continue', ARGUMENT, 'Go.', '--sandbox', 'none', '--model', 'scripted:script.json'],
  ['--model of chat', 'chat', '--model', ARGUMENT],
  ['--agent of chat', 'chat', '--agent', ARGUMENT],
  ['--config of chat', 'chat', '--config', PATH],
  ['--cwd of chat', 'chat', '--cwd', PATH],
  ['--sandbox of chat', 'chat', '--sandbox', ARGUMENT],
  ['--timeout of chat', 'chat', '--timeout', ARGUMENT],
  ['--max-turns of chat', 'chat', '--max-turns', ARGUMENT],
  ['--max-calls of chat', 'chat', '--max-calls', ARGUMENT],
  ['--max-tokens of chat', 'chat', '--max-tokens', ARGUMENT],
  ['--output of chat', 'chat', '--output', ARGUMENT],
  ['a task to approve', 'approve', ARGUMENT],
  ['--question of approve', 'approve', 'x', '--yes', '--question', ARGUMENT],
  ['--why of approve', 'approve', 'x', '--no', '--question', 'q', '--why', ARGUMENT],
  ['--answer of approve', 'approve', 'x', '--question', 'q', '--answer', ARGUMENT],
  ['--tenant of approve', 'approve', 'x', '--tenant', ARGUMENT],
  ['--server of approve', 'approve', 'x', '--server', ARGUMENT],
  ['--config of approve', 'approve', 'x', '--config', PATH],
  ['a task to steer', 'steer', ARGUMENT, 'hi'],
  ['--tenant of steer', 'steer', 'x', 'hi', '--tenant', ARGUMENT],
  ['--server of steer', 'steer', 'x', 'hi', '--server', ARGUMENT],
  ['--config of steer', 'steer', 'x', 'hi', '--config', PATH],
  ['a task to requeue', 'requeue', ARGUMENT],
  ['--tenant of requeue', 'requeue', 'x', '--tenant', ARGUMENT],
  ['--server of requeue', 'requeue', 'x', '--server', ARGUMENT],
  ['--config of requeue', 'requeue', 'x', '--config', PATH],
  ['an agent of engine', 'engine', 'off', ARGUMENT],
  ['--config of engine', 'engine', '--config', PATH],
  ['--agent of halt', 'halt', '--agent', ARGUMENT],
  ['--tenant of halt', 'halt', '--tenant', ARGUMENT],
  ['--mode of halt', 'halt', '--agent', 'x', '--mode', ARGUMENT],
  ['--timeout of halt', 'halt', '--agent', 'x', '--timeout', ARGUMENT],
  ['--server of halt', 'halt', '--agent', 'x', '--server', ARGUMENT],
  ['--config of halt', 'halt', '--agent', 'x', '--config', PATH],
  ['--agent of pause', 'pause', '--agent', ARGUMENT],
  ['--tenant of pause', 'pause', '--tenant', ARGUMENT],
  ['--server of pause', 'pause', '--agent', 'x', '--server', ARGUMENT],
  ['--config of pause', 'pause', '--agent', 'x', '--config', PATH],
  ['--agent of resume', 'resume', '--agent', ARGUMENT],
  ['--tenant of resume', 'resume', '--tenant', ARGUMENT],
  ['--server of resume', 'resume', '--agent', 'x', '--server', ARGUMENT],
  ['--config of resume', 'resume', '--agent', 'x', '--config', PATH],
  ['a short name of pause', 'pause', '--agent', TEXTS.find((text) => text.includes('\u001b')) ?? ''],
  ['--tenant of erase', 'erase', '--tenant', ARGUMENT],
  ['--conversation of erase', 'erase', '--tenant', 'x', '--conversation', ARGUMENT],
  ['--server of erase', 'erase', '--tenant', 'x', '--server', ARGUMENT],
  ['--config of erase', 'erase', '--tenant', 'x', '--config', PATH],
  ['--config of migrate', 'migrate', '--config', PATH],
  ['--only of check', 'check', '--only', ARGUMENT],
  ['a URL of check', 'check', '--protocol', 'chat', ARGUMENT],
  ['--protocol of check', 'check', '--protocol', ARGUMENT],
  ['--header of check', 'check', '--protocol', 'chat', '--header', ARGUMENT.replaceAll(':', ''), 'http://localhost:9'],
  ['--stop-url of check', 'check', '--protocol', 'chat', '--stop-url', ARGUMENT, 'http://localhost:9'],
  ['--second-url of check', 'check', '--protocol', 'a2a', '--second-url', ARGUMENT, 'http://localhost:9'],
  ['--tool of check', 'check', '--protocol', 'mcp', '--tool', ARGUMENT, '--', PATH],
  ['--timeout of check', 'check', '--timeout', ARGUMENT, '--', 'x'],
  ['--provider-port of check', 'check', '--provider-port', ARGUMENT, '--', 'x'],
  ['--env of check', 'check', '--env', `=${ARGUMENT}`, '--', 'x'],
  ['--junit of check', 'check', '--junit', PATH],
  ['--badge of check', 'check', '--badge', PATH],
  ['a command of check', 'check', '--', PATH],
  ['a shell', 'completions', ARGUMENT],
  ['--config of doctor', 'doctor', '--config', PATH],
  ['--delay', 'echo', '--delay', ARGUMENT],
  ['--sandbox of acp', 'acp', '--sandbox', ARGUMENT],
  ['--model of acp', 'acp', '--sandbox', 'none', '--model', ARGUMENT],
  ['--agent of acp', 'acp', '--sandbox', 'none', '--model', 'scripted:script.json', '--agent', ARGUMENT],
  ['--config of acp', 'acp', '--config', PATH],
  ['--wait of acp', 'acp', '--wait', ARGUMENT, '--', 'x'],
  ['--log of acp', 'acp', '--log', PATH, '--', 'x'],
  ['--folder of acp', 'acp', '--sandbox', 'workspace', '--folder', PATH, '--', 'x'],
  ['--readable of acp', 'acp', '--sandbox', 'workspace', '--readable', PATH, '--', 'x'],
  ['--key of acp', 'acp', '--sandbox', 'workspace', '--key', ARGUMENT, '--', 'x'],
  ['--host of acp', 'acp', '--sandbox', 'workspace', '--host', ARGUMENT, '--', 'x'],
  ['--sandbox of mcp', 'mcp', '--sandbox', ARGUMENT],
  ['--model of mcp', 'mcp', '--sandbox', 'none', '--model', ARGUMENT],
  ['--agent of mcp', 'mcp', '--sandbox', 'none', '--model', 'scripted:script.json', '--agent', ARGUMENT],
  ['--config of mcp', 'mcp', '--config', PATH],
  ['--agent of serve', 'serve', '--agent', ARGUMENT],
  ['--port of serve', 'serve', '--port', ARGUMENT],
  ['--host of serve', 'serve', '--host', ARGUMENT],
  ['--hostname of serve', 'serve', '--host', '0.0.0.0', '--hostname', ARGUMENT],
  ['--origin of serve', 'serve', '--origin', ARGUMENT],
  ['--token-file of serve', 'serve', '--token-file', PATH],
  ['--concurrency of serve', 'serve', '--concurrency', ARGUMENT],
  ['--drain of serve', 'serve', '--drain', ARGUMENT],
  ['--model of serve', 'serve', '--work', '--sandbox', 'none', '--model', ARGUMENT],
  ['--sandbox of serve', 'serve', '--work', '--sandbox', ARGUMENT],
  ['--config of serve', 'serve', '--config', PATH],
  ['--agent of worker', 'worker', '--agent', ARGUMENT],
  ['--concurrency of worker', 'worker', '--concurrency', ARGUMENT],
  ['--model of worker', 'worker', '--sandbox', 'none', '--model', ARGUMENT],
  ['--sandbox of worker', 'worker', '--sandbox', ARGUMENT],
  ['--health-port of worker', 'worker', '--health-port', ARGUMENT],
  ['--host of worker', 'worker', '--health-port', '0', '--host', ARGUMENT],
  ['--metrics-port of worker', 'worker', '--metrics-port', ARGUMENT],
  ['--metrics-host of worker', 'worker', '--metrics-port', '0', '--metrics-host', ARGUMENT],
  ['--watchdog of worker', 'worker', '--watchdog', ARGUMENT],
  ['--config of worker', 'worker', '--config', PATH],
  ['--port of console', 'console', '--port', ARGUMENT],
  ['--config of console', 'console', '--config', PATH],
  ['--port of demo', 'demo', '--port', ARGUMENT],
  ['a kind of new', 'new', ARGUMENT],
  ['a name of new', 'new', 'tool', ARGUMENT],
  ['--folder of new', 'new', 'tool', 'fine', '--folder', PATH],
];

/** These use standard output for their protocol, so no other command can follow in the same process. */
const PROTOCOLS = ['acp', 'echo', 'mcp'];
const isProtocol = (row: (typeof WRONG)[number]): boolean => PROTOCOLS.includes(row[1]!);
/** A process for each: a change starts one of each command. */
const ALONE = forChange(
  WRONG.filter(isProtocol),
  ([, command], index) => WRONG.filter(isProtocol).findIndex((row) => row[1] === command) === index,
);
const TOGETHER = WRONG.filter((row) => !isProtocol(row));

test.each<[string, string[]]>([
  ['on a terminal', []],
  ...(isNight ? [['as JSON', ['--json']] satisfies [string, string[]]] : []),
])('every wrong argument is reported without being obeyed, %s', (_, more) => {
  const own = home([['Done.']]);
  own.folder.write('wrong.json', JSON.stringify(TOGETHER.map((row) => [...row, ...more])));
  const [file = '', condition = ''] = BIN;
  const output = onTerminal(own, [own.folder.at('wrong.json')], [file, condition, MANY]);
  expectInert(output);
  const said = output.split(/^=== /m).slice(1);
  expect(said).toHaveLength(TOGETHER.length);
  const silent = said.map((one) => one.split('\n')).filter(([, ...lines]) => lines.join('').trim() === '');
  expect(silent.map(([name]) => name)).toEqual([]);
});

test.each([...ALONE, ['a command', ARGUMENT]])('a wrong %s is reported without being obeyed', (_, ...args) => {
  expectInert(onTerminal(home([['Done.']]), args));
});

test('no option of a command is left out', async () => {
  for (const [name, { load }] of Object.entries(COMMANDS)) {
    const given = new Set(WRONG.filter((row) => row[1] === name).flatMap((row) => row.slice(2)));
    const { options } = (await load()).command;
    const texts = Object.keys(options).filter((option) => options[option]!.type === 'string');
    // Reasons have a separate test.
    const missing = texts.filter((option) => option !== 'reason' && !given.has(`--${option}`));
    expect(missing, name).toEqual([]);
  }
});

test('hostile output of a configuration and its code is filtered: doctor, run', () => {
  const config = `console.log(${JSON.stringify(TEXTS.join(' '))});
    process.emitWarning(${JSON.stringify(TEXTS.join(' '))});
    throw new Error(${JSON.stringify(TEXTS.join(' '))});`;
  const own = home([['Done.']], { 'config/whoa/whoa.config.mjs': config });
  expectInert(onTerminal(own, ['doctor']), '<U+001B>');
  expectInert(onTerminal(own, ['run', '--sandbox', 'none', '--model', 'scripted:script.json', 'Go.']), '<U+001B>');
});

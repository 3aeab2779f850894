// 500 hostile texts through every field of every command, on a terminal: nothing but our own styles is obeyed by it.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createVirtualWorld } from '@whoa/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { hostileText, obeyedIn } from '../hostile-text.ts';
import { BIN, createHome, type Home } from './terminal.ts';

const world = createVirtualWorld({ seed: 20_261 });
const TEXTS = Array.from({ length: 500 }, () => hostileText(() => world.random()));
/** Arguments cannot hold NUL, and a lone half of a character becomes another one. */
const ARGUMENT = TEXTS.join(' ').replaceAll('\0', '').toWellFormed();
/** Short enough for the name of a file; all of them in turn would be too long. */
const PATH = ARGUMENT.replaceAll('/', '').slice(0, 60);

function home(script: unknown, files: Readonly<Record<string, string>> = {}): Home {
  const made = createHome({ 'script.json': JSON.stringify(script), ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Runs the command on a terminal; returns everything that the terminal got. */
function onTerminal({ folder, env }: Home, args: readonly string[]): string {
  const quoted = [...BIN, ...args].map((arg) => `'${arg.replaceAll("'", `'\\''`)}'`).join(' ');
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
  expect([...new Set(obeyedIn(output))]).toEqual([]);
  for (const word of words) expect(output).toContain(word);
}

test('names of tools, inputs, results, words and errors of a model: run, watch, tasks', () => {
  const calls = TEXTS.slice(0, 200).map((text) => ({ call: text, input: { command: text, path: text } }));
  const known = TEXTS.slice(200, 260).map((text) => ({ call: 'read', input: { path: text } }));
  const own = home([[...TEXTS.slice(260), ...calls], known, [{ fail: TEXTS.join(' ') }]]);
  const prompt = ARGUMENT.slice(0, 20_000);
  expectInert(
    onTerminal(own, ['run', '--yes', '--sandbox', 'none', '--model', 'scripted:script.json', '--', prompt]),
    '<U+001B>',
    '✘',
  );
  const tasks = onTerminal(own, ['tasks']);
  expectInert(tasks, '<U+001B>', 'failed');
  const id = /t0-[\w-]+/.exec(tasks)![0];
  expectInert(onTerminal(own, ['watch', id]), '<U+001B>', '✘');
  expectInert(onTerminal(own, ['watch', id, '--json']), String.raw`\u001b`);
  expectInert(onTerminal(own, ['tasks', '--json']), String.raw`\u001b`);
});

test('the reason of a cancel: cancel, and the run it stops', async () => {
  const own = home([[{ call: 'bash', input: { command: 'echo begun; sleep 300' } }]]);
  const terminal = own.openTerminal();
  terminal.type("whoa run --yes --sandbox none --model scripted:script.json 'Go.' 2>&1 | tee seen; echo exit:$?\n");
  await terminal.waitFor(/bash: begun|▸ bash/);
  const id = /t0-[\w-]+/.exec(own.whoa(['tasks']).stdout)![0];
  const reason = `why ${ARGUMENT.slice(0, 20_000)}`;
  expectInert(onTerminal(own, ['cancel', id, '--mode', 'now', '--reason', reason]), 'Stopped after', '<U+001B>');
  await terminal.waitFor(/exit:/);
  expectInert(own.folder.read('seen'), 'Stopped after', '<U+001B>');
  expectInert(onTerminal(own, ['watch', id]), 'Stopped after', '<U+001B>');
  expectInert(onTerminal(own, ['cancel', id]), 'already ended');
});

/** Every option and argument of every command, given as nobody should. */
const WRONG: readonly (readonly [string, ...string[]])[] = [
  ['a command', ARGUMENT],
  ['an option', `--${ARGUMENT}`],
  ['a value of a switch', 'run', `--yes=${ARGUMENT}`],
  ['too much', 'tasks', ARGUMENT],
  ['a second prompt', 'run', 'Go.', ARGUMENT],
  ['--model', 'run', '--sandbox', 'none', '--model', ARGUMENT, 'Go.'],
  ['--agent', 'run', '--sandbox', 'none', '--model', 'scripted:script.json', '--agent', ARGUMENT, 'Go.'],
  ['--sandbox', 'run', '--sandbox', ARGUMENT, 'Go.'],
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
  ['--server of watch', 'watch', 'x', '--server', ARGUMENT],
  ['--config of watch', 'watch', 'x', '--config', PATH],
  ['--config of doctor', 'doctor', '--config', PATH],
  ['--delay', 'echo', '--delay', ARGUMENT],
  ['--sandbox of acp', 'acp', '--sandbox', ARGUMENT],
  ['--model of acp', 'acp', '--sandbox', 'none', '--model', ARGUMENT],
  ['--agent of acp', 'acp', '--sandbox', 'none', '--model', 'scripted:script.json', '--agent', ARGUMENT],
  ['--config of acp', 'acp', '--config', PATH],
  ['--agent of serve', 'serve', '--agent', ARGUMENT],
  ['--port of serve', 'serve', '--port', ARGUMENT],
  ['--host of serve', 'serve', '--host', ARGUMENT],
  ['--origin of serve', 'serve', '--origin', ARGUMENT],
  ['--token-file of serve', 'serve', '--token-file', PATH],
  ['--concurrency of serve', 'serve', '--concurrency', ARGUMENT],
  ['--model of serve', 'serve', '--work', '--sandbox', 'none', '--model', ARGUMENT],
  ['--sandbox of serve', 'serve', '--work', '--sandbox', ARGUMENT],
  ['--config of serve', 'serve', '--config', PATH],
  ['--agent of worker', 'worker', '--agent', ARGUMENT],
  ['--concurrency of worker', 'worker', '--concurrency', ARGUMENT],
  ['--model of worker', 'worker', '--sandbox', 'none', '--model', ARGUMENT],
  ['--sandbox of worker', 'worker', '--sandbox', ARGUMENT],
  ['--health-port of worker', 'worker', '--health-port', ARGUMENT],
  ['--host of worker', 'worker', '--health-port', '0', '--host', ARGUMENT],
  ['--watchdog of worker', 'worker', '--watchdog', ARGUMENT],
  ['--config of worker', 'worker', '--config', PATH],
  ['--port of demo', 'demo', '--port', ARGUMENT],
  ['a kind of new', 'new', ARGUMENT],
  ['a name of new', 'new', 'tool', ARGUMENT],
  ['--folder of new', 'new', 'tool', 'fine', '--folder', PATH],
];

test.each(WRONG)('%s that is wrong is told without being obeyed', (_, ...args) => {
  const own = home([['Done.']]);
  expectInert(onTerminal(own, args));
  expectInert(onTerminal(own, [...args, '--json']));
});

test('no option of a command is left out', () => {
  const folder = join(import.meta.dirname, '../../packages/whoa/src/commands');
  for (const file of readdirSync(folder).filter((name) => !name.includes('.test.'))) {
    const command = file.slice(0, -3);
    const given = new Set(WRONG.filter((row) => row[1] === command).flatMap((row) => row.slice(2)));
    const options = readFileSync(join(folder, file), 'utf8').matchAll(/'?([\w-]+)'?: \{ type: 'string'/g);
    // A reason has a test of its own.
    const names = [...options].map(([, name]) => `--${name}`).filter((name) => name !== '--reason');
    expect(
      names.filter((name) => !given.has(name)),
      command,
    ).toEqual([]);
  }
});

test('what a configuration and its code print: doctor, run', () => {
  const config = `console.log(${JSON.stringify(TEXTS.join(' '))});
    process.emitWarning(${JSON.stringify(TEXTS.join(' '))});
    throw new Error(${JSON.stringify(TEXTS.join(' '))});`;
  const own = home([['Done.']], { 'config/whoa/whoa.config.mjs': config });
  expectInert(onTerminal(own, ['doctor']), '<U+001B>');
  expectInert(onTerminal(own, ['run', '--sandbox', 'none', '--model', 'scripted:script.json', 'Go.']), '<U+001B>');
});

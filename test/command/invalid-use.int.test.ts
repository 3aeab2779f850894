import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { BIN, createHome, type Home } from './terminal.ts';

function home(files: Record<string, string> = {}): Home {
  const made = createHome({ 'script.json': '[["Fine."]]', ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** A command on a store that this process has locked. It waits for 10 s, during which the other tests run. */
let locked: { readonly own: Home; readonly holder: DatabaseSync; readonly ended: Promise<string> };
beforeAll(async () => {
  const own = createHome();
  await own.main(['tasks']);
  const holder = new DatabaseSync(own.folder.at('state/whoa/tasks.db'));
  holder.exec('BEGIN EXCLUSIVE');
  const [file = '', ...args] = BIN;
  const child = spawn(file, [...args, 'tasks'], {
    cwd: own.folder.path,
    env: own.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code]]) => `${stdout}${stderr}exit:${String(code)}`,
  );
  locked = { own, holder, ended };
});
afterAll(async () => {
  await locked.ended;
  locked.holder.close();
  locked.own[Symbol.dispose]();
});

const RUN = ['run', '--model', 'scripted:script.json', 'How?'];

test.each([
  ['export default {', /broken\.config\.ts cannot be loaded: .+\n$/],
  ["import 'nowhere'; export default {};", /broken\.config\.ts cannot be loaded: Cannot find package 'nowhere'.+\n$/],
  ["throw new Error('no luck')", /broken\.config\.ts cannot be loaded: no luck\n$/],
])('a configuration that cannot be loaded is named: %s', (text, words) => {
  const { status, stderr } = home({ 'broken.config.ts': text }).whoa([...RUN, '--config', 'broken.config.ts']);
  expect(stderr).toMatch(words);
  expect(status).toBe(2);
});

test.each(['ts', 'mjs'])('a syntax error in a configuration (%s) is reported with its line', (kind) => {
  const own = home({ [`broken.config.${kind}`]: "export default {\n  model: 'x',,\n};\n" });
  const { status, stderr } = own.whoa([...RUN, '--config', `broken.config.${kind}`]);
  expect(stderr).toMatch(/broken\.config\.\w+ cannot be loaded: Unexpected token .*, in line 2\n$/);
  expect(status).toBe(2);
});

test('a file that is not a task store is named, with what to do', async () => {
  const own = home({ 'state/whoa/tasks.db': 'this is a poem, and a long one, '.repeat(100) });
  for (const args of [RUN, ['tasks'], ['cancel', 'x']]) {
    const { status, stderr } = await own.main(args);
    expect(stderr).toMatch(/^whoa \w+: .*tasks\.db is corrupt \(file is not a database\); move it away/m);
    expect(status).toBe(1);
  }
  expect((await own.main(['doctor'])).stdout).toMatch(/✘ SQLite: .*tasks\.db is corrupt/);
});

test.each(['serve', 'console', 'demo'])('%s fails with what to do when its port is taken', async (command) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  const { port } = taken.address() as AddressInfo;
  const { status, stderr } = await home().main([command, '--port', `${port}`]);
  await new Promise((resolve) => taken.close(resolve));
  expect(stderr).toContain(`port ${port} is in use; use --port 0 to choose a free port`);
  expect(status).toBe(1);
});

test('a home that cannot be written to is named, with what to do', async () => {
  const own = home({ file: '' });
  const env = { XDG_STATE_HOME: own.folder.at('file'), HOME: own.folder.at('file') };
  const { status, stderr } = await own.main(RUN, { env });
  expect(stderr).toMatch(
    /^whoa run: cannot store tasks in .*: ENOTDIR.*; set XDG_STATE_HOME to a folder that you can write to/m,
  );
  expect(status).toBe(1);
  mkdirSync(own.folder.at('mine'));
  expect((await own.main(RUN, { env: { ...env, XDG_STATE_HOME: own.folder.at('mine') } })).stdout).toBe('Fine.\n');
});

test('stored files cannot be read or changed by other users, no matter what the umask is', () => {
  const own = home();
  const command = [...BIN, ...RUN];
  const env = { ...own.env, XDG_CACHE_HOME: own.folder.at('cache'), NODE_COMPILE_CACHE: '' };
  const { status } = spawnSync('sh', ['-c', 'umask 000; exec "$@"', 'sh', ...command], { cwd: own.folder.path, env });
  expect(status).toBe(0);
  const folders = ['state', 'state/whoa', 'cache', 'cache/whoa', 'cache/whoa/compiled', 'state/whoa/tasks.db'];
  const open = folders.filter((name) => (statSync(own.folder.at(name)).mode & 0o077) !== 0);
  expect(open).toEqual([]);
});

const SLOW_TO_OPEN = `
import { createAgent, defineConfig } from 'whoa';
export default defineConfig({
  agents: {
    slow: () => new Promise((resolve) => setTimeout(resolve, 60_000)),
    none: () => ({}),
  },
});
`;

test('an agent that takes long to open shows a sign of life, and Ctrl-C ends the wait', async () => {
  const own = home({ 'config/whoa/whoa.config.ts': SLOW_TO_OPEN });
  const terminal = own.openTerminal();
  terminal.type(`whoa run --model scripted:script.json 'How?'; echo "exit:$?"`);
  terminal.press('Enter');
  await terminal.waitFor(/opening the agent · \d s/);
  terminal.press('C-c');
  expect(await terminal.waitFor(/exit:130/)).toContain('Cancelled before it began.');
  const { stderr, status } = own.whoa([...RUN, '--agent', 'none']);
  expect(stderr).toContain('agents: the function did not return an agent');
  expect(status).toBe(2);
});

test('a store that does not answer shows a sign of life', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const url = `postgres://127.0.0.1:${(silent.address() as AddressInfo).port}/whoa`;
  const config = `export default { store: { backend: 'postgres', url: '${url}', connectTimeoutMs: 2_500 } };`;
  const terminal = home({ 'config/whoa/whoa.config.ts': config }).openTerminal();
  terminal.type('whoa tasks; echo "exit:$?"');
  terminal.press('Enter');
  await terminal.waitFor(/asking the store · \d s/);
  expect(await terminal.waitFor(/exit:1/)).toMatch(
    /^whoa tasks: Postgres at .* cannot be reached [^;]*; check that it runs/m,
  );
});

test('output that cannot be written ends the run, with the reason', () => {
  const own = home({ 'script.json': '{ "wordMs": 50, "replies": [["one two three four five six seven"]] }' });
  const run = [...BIN, ...RUN].map((part) => `'${part}'`).join(' ');
  const { status, stderr } = spawnSync('bash', ['-c', `${run} > /dev/full`], {
    cwd: own.folder.path,
    env: own.env,
    encoding: 'utf8',
  });
  expect(stderr).toMatch(/Stopped after .* \(disconnect: the output cannot be written: .*ENOSPC/);
  expect(status).toBe(130);
});

test('a list of tasks shows when there are more', async () => {
  const own = home();
  for (let i = 0; i < 2; i++) await own.main(RUN);
  const { stdout, stderr } = await own.main(['tasks', '--limit', '1']);
  expect(stdout.trim().split('\n')).toHaveLength(2);
  expect(stderr).toBe('… and older tasks; use --limit to show more\n');
  expect((await own.main(['tasks', '--limit', '2'])).stderr).toBe('');
});

test('a list of tasks fits a narrow terminal', async () => {
  const own = home();
  await own.main(RUN);
  const terminal = own.openTerminal({ columns: 40, rows: 20 });
  terminal.type('clear; whoa tasks');
  terminal.press('Enter');
  const seen = await terminal.waitFor(/success/);
  expect(seen).toMatch(/TASK\s+STATUS\s+TITLE\nt-[\w-]+\s+success\s+How\?/);
});

test("Ctrl-C continues where 'whoa cancel' has begun", async () => {
  const script = [[{ call: 'bash', input: { command: 'echo begun; sleep 300' } }], ['Next.']];
  const own = home({ 'script.json': JSON.stringify(script) });
  const terminal = own.openTerminal();
  terminal.type(`whoa run --yes --sandbox none --model scripted:script.json 'How?'; echo "exit:$?"`);
  terminal.press('Enter');
  await terminal.waitFor(/bash: begun/);
  const { id } = JSON.parse((await own.main(['tasks', '--json'])).stdout) as { id: string };
  expect((await own.main(['cancel', id, '--no-wait'])).stdout).toMatch(
    /is being stopped: running calls may finish, for 10 s at most/,
  );
  await terminal.waitFor(/stopping: waiting for bash · Ctrl-C again interrupts it/);
  terminal.press('C-c');
  expect(await terminal.waitFor(/exit:130/)).toMatch(/via whoa cancel[\s\S]*bash interrupted/);
});

test('a task store that another process holds is named, after a wait', async () => {
  expect(await locked.ended).toMatch(/^whoa tasks: another process has locked .*tasks\.db; try again.*\nexit:1$/);
});

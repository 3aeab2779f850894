import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { forChange } from '../night.ts';
import { borrowPostgres } from '../servers/borrow.ts';
import { createWorkspace } from '../workspace.ts';
import type { Ended } from './in-process.ts';
import { BIN, createHome, type Home } from './terminal.ts';

const SLOW = [['Let me see. ', { call: 'bash', input: { command: 'echo begun; sleep 300' } }], ['All is well.']];

function home(config: string): Home {
  const made = createHome({ 'script.json': JSON.stringify(SLOW), 'shared.config.ts': config });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Starts a run and waits until its call is running. */
async function startRun({ folder, env }: Home) {
  const [file = '', ...rest] = BIN;
  const args = [
    ...rest,
    'run',
    '--yes',
    '--sandbox',
    'none',
    '--json',
    '--config',
    'shared.config.ts',
    '--model',
    'scripted:script.json',
  ];
  const child = spawn(file, [...args, 'Is all well?'], { cwd: folder.path, env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const closed = once(child, 'close') as Promise<[number]>;
  const lines: Record<string, unknown>[] = [];
  await new Promise<void>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(JSON.parse(line) as Record<string, unknown>);
      if (line.includes('"call-update"')) resolve();
    });
  });
  return { lines, closed };
}

function elsewhere(): string {
  const folder = createWorkspace();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.at('team/tasks.db');
}

async function postgres(): Promise<string> {
  const server = await borrowPostgres();
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server.url;
}

/** A store is opened again by each process that reads the configuration, so a second command needs a second process. */
const MADE = 'a store that the configuration made';

const STORES: Record<string, () => string | Promise<string>> = {
  'a SQLite file elsewhere': () => `{ backend: 'sqlite', file: ${JSON.stringify(elsewhere())} }`,
  [MADE]: () => `createTaskStore({ backend: 'sqlite', file: ${JSON.stringify(elsewhere())} })`,
  Postgres: async () => `{ backend: 'postgres', url: ${JSON.stringify(await postgres())} }`,
};

describe.each(forChange(Object.entries(STORES), ([name]) => name === MADE))('with %s', (name, open) => {
  test('a user with the same configuration sees the run and cancels it, with its ladder', async () => {
    const imports = name === MADE ? "import { createTaskStore } from '@whoa/tasks';" : '';
    const config = `${imports}
      export default { store: ${await open()}, stopMode: { drainMs: 200, abortMs: 1_000 } };
    `;
    const [ann, bob] = [home(config), home(config)];
    const whoa = async (...args: string[]): Promise<Pick<Ended, 'stdout' | 'stderr'> & { status: number | null }> =>
      name === MADE ? bob.whoa(args) : bob.main(args);
    const run = await startRun(ann);
    const shared = ['--config', 'shared.config.ts'];
    const task = JSON.parse((await whoa('tasks', '--json', ...shared)).stdout) as { id: string };
    expect(task).toMatchObject({ status: 'running', inputs: ['Is all well?'] });
    // Without it, each home uses its own file.
    expect((await whoa('cancel', task.id)).stderr).toContain('there is no task');
    expect(existsSync(ann.folder.at('state/whoa/tasks.db'))).toBe(false);

    const cancel = await whoa('cancel', task.id, '--reason', 'lunch', ...shared);
    expect(cancel.stdout).toMatch(
      /user: lunch.*nothing was left behind[\s\S]*drain: [\s\S]*abort: [\s\S]*bash interrupted/,
    );
    expect(cancel.status).toBe(0);
    expect((await run.closed)[0]).toBe(130);
    expect(run.lines.at(-1)).toMatchObject({ type: 'result', status: 'cancelled', reason: { message: 'lunch' } });
    const watch = await whoa('watch', task.id, ...shared);
    expect(watch.stdout).toContain('bash interrupted');
    expect(watch.status).toBe(130);
    expect((await whoa('doctor', ...shared)).stdout).toMatch(
      /1 task of 1 tenant kept in .*(team\/tasks\.db|of your configuration)/,
    );
  });
});

test('an invalid configuration fails every command with the field and what to write', async () => {
  const own = home("export default { store: { backend: 'mysql' } };");
  for (const args of [['run', 'x'], ['tasks'], ['watch', 't'], ['cancel', 't'], ['acp']]) {
    const { status, stderr } = await own.main([...args, '--config', 'shared.config.ts']);
    expect(stderr).toMatch(
      /shared\.config\.ts: store: backend: expected 'memory' or 'sqlite' or 'postgres', got "mysql"\n$/,
    );
    expect(status).toBe(2);
  }
  const { stdout, status } = await own.main(['doctor', '--config', 'shared.config.ts']);
  expect(stdout).toMatch(/✘ whoa\.config\.ts: .*expected 'memory' or .*, got "mysql"/);
  expect(status).toBe(1);
});

test('a store that cannot be reached is reported in one line', async () => {
  const own = home(
    "export default { store: { backend: 'postgres', url: 'postgres://127.0.0.1:9/whoa', connectTimeoutMs: 300 } };",
  );
  const { status, stderr } = await own.main(['tasks', '--config', 'shared.config.ts']);
  expect(stderr).toMatch(/^whoa tasks: .+\n$/);
  expect(status).toBe(1);
});

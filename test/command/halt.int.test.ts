// `whoa halt` from one process, on tasks of a worker in another one, on every store that processes share.
import { createRunner } from '@whoa/tasks';
import { describe, expect, onTestFinished, test } from 'vitest';
import { create, TENANT, tryClaim } from '../../packages/tasks/src/testing/case.ts';
import { askAndPark } from '../../packages/tasks/src/testing/contract/questions/asking.ts';
import { until } from '../promises/fixture.ts';
import { openStore } from '../tasks/open-store.ts';
import { storeKinds } from '../tasks/shared-stores.ts';
import { startCommand } from './process.ts';
import { createHome } from './terminal.ts';

/**
 * `quick` stops when it is cancelled. `deaf` must finish: it does when there is a file, and after 60 s at the latest.
 */
const CONFIG = `
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createAgent, defineConfig, defineTool } from 'whoa';
import { createScriptedModel } from '@whoa/core/testing';

const wait = (name, rest, isOver) => defineTool({
  name,
  description: name,
  inputSchema: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
  inputJsonSchema: { type: 'object' },
  effects: 'read',
  ...rest,
  execute: (_, { signal }) => new Promise((resolve, reject) => {
    const timer = setInterval(() => isOver() && (clearInterval(timer), resolve('over')), 20);
    if (rest.whenCancelled === undefined) signal.addEventListener('abort', () => (clearInterval(timer), reject(signal.reason)));
  }),
});
const agentFor = (name, tool) =>
  createAgent({ name, tools: [tool], model: createScriptedModel(Array(50).fill([{ call: tool.name }])) });
const over = join(import.meta.dirname, 'over');
export default defineConfig({
  store: STORE,
  agents: {
    quick: agentFor('quick', wait('idle', {}, () => false)),
    deaf: agentFor('deaf', wait('pay', { whenCancelled: 'finish', timeoutMs: 60_000 }, () => existsSync(over))),
  },
});
`;

const NO_SCOPE = 'nothing was halted: expected --all, --agent NAME or --tenant NAME';

interface Receipt {
  readonly store: string;
  readonly isQuiet: boolean;
  readonly stopped: number;
  readonly left: number;
  readonly running: readonly { readonly id: string; readonly status: string; readonly until: number }[];
}

describe.each(storeKinds)('a halt on $name', (kind) => {
  test('leaves what only waits for an answer, counts it, and lets it continue no sooner than a resume', async () => {
    const shared = await kind.open();
    onTestFinished(() => shared[Symbol.asyncDispose]());
    const { location } = shared;
    await using store = openStore(location);
    const config = location.startsWith('{') ? location : JSON.stringify({ backend: 'sqlite', file: location });
    const home = createHome({ 'config/whoa/whoa.config.ts': CONFIG.replace('STORE', () => config) });
    onTestFinished(() => home[Symbol.dispose]());
    const task = await create(store, { tenant: TENANT, agent: 'quick' });
    const { id, ref, asked } = await askAndPark(store, [{}], { task });
    const halt = async (...more: readonly string[]) => {
      const command = startCommand(home, ['halt', '--tenant', TENANT, '--timeout', '1s', ...more]);
      await command.closed;
      return command.lines[0];
    };
    expect(await halt()).toMatchObject({ isQuiet: true, stopped: 0, left: 0, waiting: 1 });
    expect(await store.get(ref)).toMatchObject({ stage: 'parked', waiting: 1 });
    const answered = await store.answer({ tenant: TENANT, id: asked[0]! }, { value: { decision: 'yes' } });
    expect([answered.result, (await tryClaim(store, id)).result]).toEqual(['accepted', 'waiting']);
    await store.pause({ tenant: TENANT }, false);
    const other = await askAndPark(store, [{}], { task: await create(store, { tenant: TENANT, agent: 'quick' }) });
    expect(await halt('--parked')).toMatchObject({ stopped: 2, waiting: 0 });
    expect(await store.get(other.ref)).toMatchObject({ status: 'cancelling' });
  });

  test('stops tasks of a worker elsewhere, names the one that must finish, and exits with 0 only after its end', async () => {
    const shared = await kind.open();
    onTestFinished(() => shared[Symbol.asyncDispose]());
    const { location } = shared;
    await using store = openStore(location);
    const config = location.startsWith('{') ? location : JSON.stringify({ backend: 'sqlite', file: location });
    const home = createHome({ 'config/whoa/whoa.config.ts': CONFIG.replace('STORE', () => config) });
    onTestFinished(() => home[Symbol.dispose]());
    const worker = startCommand(home, ['worker', '--sandbox', 'none', '--yes', '--concurrency', '3']);
    await worker.waitFor({ type: 'working' });
    const create = async (agent: string, tenant = 'local'): Promise<string> =>
      ((await store.create({ tenant, agent, input: 'go' })) as { task: { id: string } }).task.id;
    const status = async (id: string, tenant = 'local') => (await store.get({ tenant, id }))?.status;
    const isCalling = async (id: string): Promise<boolean> =>
      JSON.stringify(await store.read({ tenant: 'local', id })).includes('"call-start"');
    const [deaf, quick, other] = [await create('deaf'), await create('quick'), await create('quick', 'other')];
    await until(async () => (await isCalling(deaf)) && (await isCalling(quick)));
    await until(async () => (await status(other, 'other')) === 'running');
    const waiting = await create('quick');

    const unscoped = startCommand(home, ['halt', '--timeout', '3s']);
    expect(await unscoped.closed).toEqual([2, null]);
    expect(unscoped.lines).toMatchObject([{ type: 'error', message: expect.stringContaining(NO_SCOPE) as string }]);
    expect(await status(quick)).toBe('running');

    const first = startCommand(home, ['halt', '--tenant', 'local', '--timeout', '3s', '--reason', 'fire']);
    expect(await first.closed).toEqual([1, null]);
    const [receipt] = first.lines as unknown as readonly Receipt[];
    expect(receipt).toMatchObject({ tenant: 'local', isQuiet: false, stopped: 3, left: 1, others: 1 });
    expect(receipt!.store).toContain(location.startsWith('{') ? 'store of your configuration' : location);
    expect(receipt!.running).toMatchObject([{ id: deaf, status: 'cancelling' }]);
    // A call that must finish may take as long as its tool allows.
    expect(receipt!.running[0]!.until - Date.now()).toBeGreaterThan(30_000);
    expect([await status(quick), await status(waiting), await status(other, 'other')]).toEqual([
      'cancelled',
      'cancelled',
      'running',
    ]);

    const second = startCommand(home, ['halt', '--tenant', 'local', '--timeout', '60s']);
    home.folder.write('config/whoa/over', '');
    expect(await second.closed).toEqual([0, null]);
    expect(second.lines).toMatchObject([{ isQuiet: true, left: 0, running: [] }]);
    expect(await status(deaf)).toBe('cancelled');
    expect((await store.get({ tenant: 'local', id: deaf }))?.outcome).toMatchObject({ reason: { message: 'fire' } });
    // Tasks that are created later wait until the tenant is resumed.
    const late = await create('quick');
    expect(await status(late)).toBe('init');
    const resumed = startCommand(home, ['resume', '--tenant', 'local']);
    expect([await resumed.closed, resumed.errors()]).toEqual([[0, null], '']);
    await until(async () => (await status(late)) === 'running');
    const all = startCommand(home, ['halt', '--agent', 'quick']);
    expect(await all.closed).toEqual([0, null]);
    expect([await status(late), await status(other, 'other')]).toEqual(['cancelled', 'cancelled']);
  }, 180_000);
});

test.each(storeKinds)(
  'a halt of all on $name counts every tenant, holds for tenants that come later, and ends with a resume of all',
  async (kind) => {
    const shared = await kind.open();
    onTestFinished(() => shared[Symbol.asyncDispose]());
    const { location } = shared;
    await using store = openStore(location);
    const config = location.startsWith('{') ? location : JSON.stringify({ backend: 'sqlite', file: location });
    const home = createHome({ 'config/whoa/whoa.config.ts': CONFIG.replace('STORE', () => config) });
    onTestFinished(() => home[Symbol.dispose]());
    const worker = startCommand(home, ['worker', '--sandbox', 'none', '--yes', '--concurrency', '5']);
    await worker.waitFor({ type: 'working' });
    const create = async (agent: string, tenant: string): Promise<string> =>
      ((await store.create({ tenant, agent, input: 'go' })) as { task: { id: string } }).task.id;
    const status = async (id: string, tenant: string) => (await store.get({ tenant, id }))?.status;
    const [acme, globex, deaf] = [
      await create('quick', 'acme'),
      await create('quick', 'globex'),
      await create('deaf', 'initech'),
    ];
    await until(async () => JSON.stringify(await store.read({ tenant: 'initech', id: deaf })).includes('"call-start"'));
    await until(
      async () => (await status(acme, 'acme')) === 'running' && (await status(globex, 'globex')) === 'running',
    );

    const first = startCommand(home, ['halt', '--all', '--timeout', '3s']);
    expect(await first.closed).toEqual([1, null]);
    expect(first.lines).toMatchObject([
      { all: true, isQuiet: false, stopped: 3, left: 1, others: 0, running: [{ id: deaf, tenant: 'initech' }] },
    ]);
    expect([await status(acme, 'acme'), await status(globex, 'globex')]).toEqual(['cancelled', 'cancelled']);
    const later = await create('quick', 'a-tenant-that-came-later');
    home.folder.write('config/whoa/over', '');
    const second = startCommand(home, ['halt', '--all', '--timeout', '60s']);
    expect(await second.closed).toEqual([0, null]);
    expect(second.lines).toMatchObject([{ isQuiet: true, stopped: 1, left: 0, running: [] }]);
    expect(await status(later, 'a-tenant-that-came-later')).toBe('cancelled');
    const held = await create('quick', 'another');
    expect((await tryClaim(store, held)).result).toBe('waiting');
    const resumed = startCommand(home, ['resume', '--all']);
    expect([await resumed.closed, resumed.errors()]).toEqual([[0, null], '']);
    await until(async () => (await status(held, 'another')) === 'running');
    expect(await startCommand(home, ['halt', '--all', '--timeout', '60s']).closed).toEqual([0, null]);
  },
  180_000,
);

test('a halt names its scope and its store, says what else runs there, and how the pause ends', async () => {
  const home = createHome();
  onTestFinished(() => home[Symbol.dispose]());
  const file = home.folder.at('other.db');
  await using store = openStore(file);
  await using runner = createRunner({ store, agents: { writer: () => new Promise(() => {}) } });
  const running = [await runner.start({ tenant: 'acme', agent: 'writer', input: 'go' })];
  running.push(await runner.start({ tenant: 'globex', agent: 'writer', input: 'go' }));
  for (const { response } of running) response.catch(() => {});
  await until(() => Promise.resolve(runner.live === 2));
  home.folder.write(
    'whoa.config.mjs',
    `export default { store: { backend: 'sqlite', file: ${JSON.stringify(file)} } };`,
  );
  const config = ['--config', 'whoa.config.mjs'];

  // Without the configuration it is another store: the refusal and the receipt name it.
  const own = home.folder.at('state/whoa/tasks.db');
  const refused = await home.main(['halt']);
  expect(refused).toMatchObject({ status: 2, stdout: '' });
  expect(refused.stderr).toContain(`${NO_SCOPE}; 'whoa tasks --stats --all-tenants' lists what is in ${own}`);
  const elsewhere = await home.main(['halt', '--tenant', 'acme']);
  expect(elsewhere).toMatchObject({ status: 0 });
  expect(elsewhere.stdout).toContain(`0 tasks of tenant acme were stopped in ${own};`);
  expect(elsewhere.stdout).toMatch(/Nothing of tenant acme runs\.\n$/);
  expect(elsewhere.stderr).toContain('whoa.config.mjs in this folder was not read, and may specify another store');
  expect(runner.live).toBe(2);

  expect((await home.main(['halt', ...config])).stderr).toContain(`lists what is in ${file}`);
  const none = await home.main(['halt', '--tenant', 'local', ...config]);
  expect(none).toMatchObject({ status: 0 });
  expect(none.stdout).toBe(
    `0 tasks of tenant local were stopped in ${file}; new ones wait until: whoa resume --tenant local --config whoa.config.mjs\n` +
      'Nothing of tenant local runs; 2 other tasks run in this store.\n',
  );
  const both = await home.main(['halt', '--all', '--tenant', 'acme', ...config]);
  expect(both).toMatchObject({ status: 2, stdout: '' });
  expect(both.stderr).toContain('--all and --tenant cannot be combined');
  const all = await home.main(['halt', '--agent', 'writer', '--mode', 'kill', ...config]);
  expect(all).toMatchObject({ status: 0 });
  expect(all.stdout).toMatch(/^2 tasks of agent writer were stopped in .*\nNothing of agent writer runs\.\n$/);

  await home.main(['resume', '--agent', 'writer', ...config]);
  const last = await runner.start({ tenant: 'acme', agent: 'writer', input: 'go' });
  last.response.catch(() => {});
  await until(() => Promise.resolve(runner.live === 1));
  const everything = await home.main(['halt', '--all', '--mode', 'kill', ...config]);
  expect(everything).toMatchObject({ status: 0 });
  expect(everything.stdout).toBe(
    `1 task of all agents and tenants was stopped in ${file}; new ones wait until: whoa resume --all --config whoa.config.mjs\n` +
      `Nothing of all agents and tenants runs in ${file}.\n`,
  );
  // Each program that waits says so, and how the wait ends.
  home.folder.write('hi.json', '[["hi"]]');
  const run = await home.main(['run', '--model', 'scripted:hi.json', 'hi', ...config]);
  expect(run.stderr).toContain(
    'everything is paused, so no task starts; to end the pause: whoa resume --all --config whoa.config.mjs',
  );
});

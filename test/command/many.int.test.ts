// Tasks of several tenants, several at a time, in a store and behind a server.
import { createTaskStore, type TaskRecord } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { startCommand } from './process.ts';
import { createHome } from './terminal.ts';

const TOKEN = 'a-token-for-the-tests-of-the-command';

/** Tasks that no worker runs: three of acme, one of this machine. */
async function setUp() {
  const home = createHome();
  onTestFinished(() => home[Symbol.dispose]());
  await home.main(['tasks']);
  const store = createTaskStore({ backend: 'sqlite', file: home.folder.at('state/whoa/tasks.db') });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const create = async (tenant: string, agent: string, conversation?: string): Promise<string> => {
    const receipt = await store.create({ tenant, agent, input: 'Go.', ...(conversation && { conversation }) });
    return (receipt as { task: TaskRecord }).task.id;
  };
  const acme = [await create('acme', 'a'), await create('acme', 'a', 'talk'), await create('acme', 'b')];
  const local = await create('local', 'a');
  const statuses = async (): Promise<string[]> =>
    Promise.all(acme.map(async (id) => (await store.get({ tenant: 'acme', id }))!.status));
  const server = async (): Promise<string> => {
    const serving = startCommand(home, ['serve', '--port', '0'], { WHOA_TOKEN: TOKEN });
    return (await serving.waitFor({ type: 'listening' }))['url'] as string;
  };
  return { home, store, acme, local, statuses, server };
}

const parseIds = (stdout: string): unknown[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { id: unknown }).id);

test.each(['a store', 'a server'])(
  'in %s: a tenant is named, several are stopped, all that match, or none in a dry run',
  async (kind) => {
    const { home, acme, local, statuses, server } = await setUp();
    const where = kind === 'a store' ? [] : ['--server', await server()];
    const whoa = (...args: string[]) => home.main([...args, ...where], { env: { WHOA_TOKEN: TOKEN } });
    const [first = '', second = '', third = ''] = acme;
    expect(parseIds((await whoa('tasks', '--json')).stdout)).toEqual([local]);
    expect(new Set(parseIds((await whoa('tasks', '--json', '--tenant', 'acme')).stdout))).toEqual(new Set(acme));
    expect((await whoa('cancel', first)).stderr).toMatch(
      /there is no task .*, with --all-tenants those of every tenant/,
    );

    const dry = await whoa('cancel', '--all', '--tenant', 'acme', '--agent', 'a', '--dry-run');
    expect([dry.status, dry.stdout]).toEqual([0, expect.stringContaining('2 tasks would be stopped; nothing was.')]);
    expect((await whoa('cancel', '--all', '--tenant', 'acme', '--conversation', 'talk', '--dry-run')).stdout).toContain(
      '1 task would',
    );
    expect((await whoa('cancel', first, 'nope', '--tenant', 'acme')).status).toBe(2);
    expect(await statuses()).toEqual(['init', 'init', 'init']);

    const two = await whoa('cancel', first, second.slice(0, 12), first, '--tenant', 'acme', '--reason', 'lunch');
    expect([two.status, two.stdout.match(/is being stopped/g)?.length]).toEqual([0, 2]);
    expect(await statuses()).toEqual(['cancelled', 'cancelled', 'init']);
    const late = await whoa('cancel', first, third, '--tenant', 'acme');
    expect([late.status, late.stdout]).toEqual([1, expect.stringContaining('had already ended: cancelled')]);
    expect(await statuses()).toEqual(['cancelled', 'cancelled', 'cancelled']);
    expect((await whoa('watch', first, '--tenant', 'acme')).status).toBe(130);
    expect((await whoa('cancel', '--all', '--json')).stdout).toContain(`"id":"${local}","result":"accepted"`);
    expect((await whoa('cancel', '--all')).stdout).toBe('No tasks to stop.\n');
  },
);

test('a server that does not know the token, or is not there, is reported in one line', async () => {
  const { home, server } = await setUp();
  const url = await server();
  const ask = (to: string) =>
    home.main(['tasks', '--server', to], { env: { WHOA_TOKEN: 'another-token-of-somebody' } });
  expect(await ask(url)).toMatchObject({
    status: 2,
    stderr: `whoa tasks: ${url} rejected the token in WHOA_TOKEN; 'whoa serve' shows one\n`,
  });
  expect(await ask('http://127.0.0.1:9')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^whoa tasks: cannot reach http:\/\/127\.0\.0\.1:9: .+\n$/) as string,
  });
});

test('doctor counts the tasks of all tenants, and reports a missing model', async () => {
  const { home } = await setUp();
  const { stdout, status } = await home.main(['doctor']);
  expect(stdout).toMatch(/4 tasks of 2 tenants kept in .*tasks\.db\n/);
  expect(stdout).toMatch(/✘ whoa run: no model is set: set ANTHROPIC_API_KEY/);
  expect(status).toBe(1);
  const keyed = await home.main(['doctor'], { env: { OPENAI_API_KEY: 'sk-none' } });
  expect([keyed.status, keyed.stdout]).toEqual([0, expect.stringMatching(/✔ whoa run: uses openai:/)]);
});

test.each(['a store', 'a server'])(
  'in %s: the tasks of all tenants are listed, counted, watched and stopped',
  async (kind) => {
    const { home, acme, local, statuses, server } = await setUp();
    const where = kind === 'a store' ? [] : ['--server', await server()];
    const whoa = (...args: string[]) => home.main([...args, ...where], { env: { WHOA_TOKEN: TOKEN } });
    const listed = await whoa('tasks', '--all-tenants', '--json', '--limit', '3');
    const all = [...acme, local];
    expect(parseIds(listed.stdout)).toHaveLength(3);
    expect(new Set(parseIds((await whoa('tasks', '--all-tenants', '--json')).stdout))).toEqual(new Set(all));
    expect((await whoa('tasks', '--all-tenants')).stdout).toMatch(/^TENANT +TASK .*\n(acme|local) /);
    expect((await whoa('tasks', '--all-tenants', '--stats')).stdout).toMatch(
      /^TENANT +INIT +RUNNING .*\nacme +3 +0 .*\nlocal +1 +0 /,
    );
    expect((await whoa('tasks', '--stats')).stdout).toMatch(/\nlocal +1 +0 /);
    expect((await whoa('tasks', '--workers')).stderr).toContain('No workers.');
    expect((await whoa('tasks', '--all-tenants', '--tenant', 'acme')).stderr).toContain('cannot be combined');
    const one = await whoa('cancel', acme[0]!.slice(0, 14), '--all-tenants', '--reason', 'lunch');
    expect([one.status, await statuses()]).toEqual([0, ['cancelled', 'init', 'init']]);
    expect((await whoa('watch', acme[0]!, '--all-tenants')).status).toBe(130);
    expect((await whoa('cancel', 't-nothing', '--all-tenants')).stderr).toContain('there is no task');
    const rest = await whoa('cancel', '--all', '--all-tenants');
    expect([rest.status, rest.stdout.match(/is being stopped/g)?.length]).toEqual([0, 3]);
    expect(await statuses()).toEqual(['cancelled', 'cancelled', 'cancelled']);
  },
);

test('hints can be pasted where the command was started with npx', async () => {
  const home = createHome();
  onTestFinished(() => home[Symbol.dispose]());
  const npx = { env: { npm_command: 'exec' } };
  expect((await home.main(['cancel', 'nope'], npx)).stderr).toContain("'npx whoa tasks' lists them");
  expect((await home.main(['tasks'], npx)).stderr).toContain("'npx whoa run' creates tasks");
  expect((await home.main(['tasks'])).stderr).toContain("'whoa run' creates tasks");
});

test.each(['a store', 'a server'])('in %s: a list shows what tasks were asked, have done and ask for', async (kind) => {
  const { home, store, local, server } = await setUp();
  const request = { session: 's', claim: 'c', worker: 'w', leaseMs: 600_000 };
  await store.claim(local, request);
  const by = { id: local, epoch: 1, session: 's', claim: 'c' };
  const activity = { turns: 3, calls: 12 };
  const question = { id: `${local}.q`, callId: 'c', kind: 'approve', shown: 'x' } as const;
  await store.append(by, { after: 0, events: ['a'], activity, asks: [question] });
  await store.create({ tenant: 'local', agent: 'b', input: { order: 7 } });
  const where = kind === 'a store' ? [] : ['--server', await server()];
  const list = async (...args: string[]) =>
    (await home.main(['tasks', ...where, ...args], { env: { WHOA_TOKEN: TOKEN } })).stdout;
  expect(await list()).toMatch(/^TASK +STATUS +AGENT +AGE +TOOK +TURNS +CALLS +TOKENS +TITLE\n/);
  expect(await list()).toMatch(/asking +a +\S+ \S+ +\S+ \S+ +3 +12 +Go\.$/m);
  // A task without a title shows its input.
  expect(await list()).toMatch(/init +b .* {"order":7}$/m);
  expect(await list('--json')).toContain('"title":"Go."');
  await store.answer({ tenant: 'local', id: question.id }, { value: { decision: 'yes' } });
  expect(await list()).toMatch(/running +a .* 3 +12 +Go\.$/m);
  // Its tokens, of which the provider has not reported all.
  const usage = { inputTokens: 1_200, outputTokens: 34, isComplete: false };
  await store.finish(by, { status: 'success', answer: 'Done.', usage });
  expect(await list()).toMatch(/success +a +\S+ \S+ +\S+ \S+ +3 +12 +1234\+ +Go\.$/m);
});

test.each(['a store', 'a server'])(
  "in %s: an agent's question is shown, and answered with text or JSON",
  async (kind) => {
    const { home, store, local, server } = await setUp();
    await store.claim(local, { session: 's', claim: 'c', worker: 'w', leaseMs: 600_000 });
    const by = { id: local, epoch: 1, session: 's', claim: 'c' };
    const asks = ['q1', 'q2'].map((id) => ({ id: `${local}.${id}`, callId: id, kind: 'answer' as const, shown: 'x' }));
    const events = asks.map(({ id, callId }) => {
      const fields = [{ name: 'question', lines: ['Which day?'] }];
      const question = { callId, tool: 'when', effects: 'read', title: 'when', fields, alwaysScope: 'this call only' };
      const schema = callId === 'q1' ? { type: 'string' } : { type: 'object', properties: { day: { type: 'number' } } };
      return { type: 'question-asked', kind: 'answer', id, at: 1, question, input: {}, schema };
    });
    await store.append(by, { after: 0, events, asks });
    const where = kind === 'a store' ? [] : ['--server', await server()];
    const approve = (...args: string[]) =>
      home.main(['approve', local, ...where, ...args], { env: { WHOA_TOKEN: TOKEN } });
    const asking = await home.main(['approve', ...where], { env: { WHOA_TOKEN: TOKEN } });
    expect(asking).toMatchObject({ status: 0, stdout: expect.stringContaining('· to answer: whoa ') as string });
    const shown = (await approve()).stdout;
    expect(shown).toMatch(/^when asks\n {2}│ question: Which day\?\n {2}· the answer: text\nanswer it with: whoa /);
    expect(shown).toMatch(/--question \S+\.q1 --answer TEXT/);
    expect((await approve('--question', asks[0]!.id, '--yes')).stderr).toContain('expected --answer');
    expect((await approve('--answer', 'x')).stderr).toContain('--answer needs --question');
    const wrong = await approve('--question', asks[1]!.id, '--answer', 'tomorrow');
    expect(wrong).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('expected JSON: { "day"?: number }') as string,
    });
    for (const [index, text] of ['42', '{"day":3}'].entries())
      expect(await approve('--question', asks[index]!.id, '--answer', text)).toMatchObject({ status: 0 });
    const { questions } = (await store.get({ tenant: 'local', id: local }))!;
    expect(questions!.map(({ answer }) => answer?.value)).toEqual([{ answer: '42' }, { answer: { day: 3 } }]);
    const nothing = await home.main(['approve', ...where], { env: { WHOA_TOKEN: TOKEN } });
    expect(nothing).toMatchObject({ status: 1, stdout: 'no task asks anything now\n' });
  },
);

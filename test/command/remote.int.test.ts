// Approve and steer from another terminal, in the store and over a server.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../promises/fixture.ts';
import type { InProcess } from './in-process.ts';
import { startCommand } from './process.ts';
import { createHome, type Home, type Terminal } from './terminal.ts';

const TOKEN = 'a-token-for-the-tests-of-the-command';
const ASKING = [[{ call: 'bash', input: { command: 'touch made' } }], ['All is well.']];

function home(script: unknown = ASKING): Home {
  const made = createHome({ 'script.json': JSON.stringify(script) });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const SIZE = { columns: 110, rows: 40 };
const RUN = ['run', '--model', 'scripted:script.json', '--sandbox', 'none'];

/** Waits for the question of a run; returns the id of its task. */
async function idOfAsking(run: Pick<Terminal, 'waitFor'>): Promise<string> {
  return /whoa cancel (\S+)/.exec(await run.waitFor(/why not:$/))![1]!;
}

/** Starts a run at a terminal and waits for its question. */
async function startAsking(own: Home): Promise<{ readonly run: InProcess; readonly id: string }> {
  const run = own.start([...RUN, 'Go.'], { terminal: SIZE });
  return { run, id: await idOfAsking(run) };
}

/** Starts `whoa approve` at another terminal and waits for the question. */
async function startApproving(own: Home, id: string): Promise<InProcess> {
  const approving = own.start(['approve', id], { terminal: SIZE });
  await approving.waitFor(/why not:$/);
  return approving;
}

interface Question {
  readonly id: string;
  readonly question: { readonly tool: string };
}

/** The questions that a task waits for, as a program reads them. */
async function readQuestions(own: Home, id: string): Promise<Question[]> {
  const { stdout } = await own.main(['approve', id, '--json']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; id: string; question: { tool: string } })
    .filter(({ type }) => type === 'question');
}

test('a question is answered from another terminal, which shows all of it, and the first one withdraws it', async () => {
  const own = home();
  const [first, second] = [own.openTerminal(), own.openTerminal()];
  first.type(`whoa run --model scripted:script.json --sandbox none 'Go.'; echo "exit:$?"\n`);
  const id = await idOfAsking(first);
  second.type(`whoa approve ${id}; echo "exit:$?"\n`);
  expect(await second.waitFor(/why not:$/)).toMatch(
    /bash wants to execute in \S+, without a sandbox:\n {2}│ command: touch made\n {2}· always means: this call of bash/,
  );
  expect(existsSync(own.folder.at('made'))).toBe(false);
  const third = own.start(['watch', id]);
  await third.waitFor(/\? bash: touch made · to answer: whoa approve t-/);
  second.type('y\n');
  await second.waitFor(/bash: allowed\nexit:0/);
  const shown = await first.waitFor(/exit:0/);
  expect(shown).toMatch(/answered from elsewhere: yes\n[\s\S]*All is well\./);
  expect(shown).not.toContain('<U+');
  expect((await third.ended).status).toBe(0);
  expect(existsSync(own.folder.at('made'))).toBe(true);
});

test('a question that is answered at the run itself is withdrawn in the other terminal', async () => {
  const own = home();
  const { run, id } = await startAsking(own);
  const approving = await startApproving(own, id);
  run.type('use printf\n');
  expect((await approving.ended).status).toBe(1);
  expect(approving.see()).toContain('asks nothing now');
  expect((await run.ended).status).toBe(0);
  expect(run.see()).toContain('denied: use printf');
  expect(existsSync(own.folder.at('made'))).toBe(false);
});

test('a cancel withdraws the question in both terminals', async () => {
  const own = home();
  const { run, id } = await startAsking(own);
  const approving = await startApproving(own, id);
  expect((await own.main(['cancel', id])).status).toBe(0);
  expect((await run.ended).status).toBe(130);
  expect((await approving.ended).status).toBe(1);
  expect(existsSync(own.folder.at('made'))).toBe(false);
});

test('an answer without a terminal names the question it read, once', async () => {
  const own = home();
  const { run, id } = await startAsking(own);
  const shown = await own.main(['approve', id]);
  expect(shown.stdout).toMatch(
    / {2}│ command: touch made\n[\s\S]*answer it with: whoa approve \S+ --question \S+ --yes/,
  );
  expect(await own.main(['approve', id, '--yes'])).toMatchObject({ status: 2 });
  expect(await own.main(['approve', id, '--question', 'guessed', '--yes'])).toMatchObject({ status: 1 });
  const [asked] = await readQuestions(own, id);
  expect(asked).toMatchObject({ question: { tool: 'bash' } });
  const answer = ['approve', id, '--question', asked!.id, '--no', '--why', 'not today'];
  expect(await own.main(answer)).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('bash: denied') as string,
  });
  expect((await run.ended).status).toBe(0);
  expect(run.see()).toContain('denied: not today');
  expect(await own.main(answer)).toMatchObject({ status: 1 });
  expect(await readQuestions(own, id)).toEqual([]);
});

test('a run is steered from another terminal, and takes no more messages when it has ended', async () => {
  const own = home([[{ call: 'bash', input: { command: 'until [ -e go ]; do sleep 0.1; done' } }], ['All is well.']]);
  const run = own.start([...RUN, '--yes', 'Go.'], { terminal: SIZE });
  const [, id = ''] = /whoa cancel (\S+)/.exec(await run.waitFor(/▸ bash/))!;
  expect(await own.main(['steer', id, 'be brief'], { input: 'and kind' })).toMatchObject({
    status: 0,
    stdout: `${id} reads the message before its next step\n`,
  });
  own.folder.write('go', '');
  expect((await run.ended).status).toBe(0);
  expect(run.see()).toMatch(/» be brief ⏎ and kind/);
  expect(await own.main(['steer', id, 'too late'])).toMatchObject({
    status: 1,
    stdout: `${id} takes no more messages: it is success\n`,
  });
  expect(await own.main(['steer', id])).toMatchObject({ status: 2 });
  expect(await own.main(['steer', 'none', 'hello'])).toMatchObject({ status: 2 });
});

/** A server with a worker whose task asks, and a terminal that shows its question. */
async function askOverServer() {
  const own = home();
  const env = { WHOA_TOKEN: TOKEN };
  const work = ['--work', '--sandbox', 'none', '--model', 'scripted:script.json'];
  const server = startCommand(own, ['serve', '--port', '0', ...work], env);
  const { url } = (await server.waitFor({ type: 'listening' })) as { url: string };
  const created = await fetch(`${url}/v1/tasks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ agent: 'assistant', input: 'Go.' }),
  });
  const { task } = (await created.json()) as { task: { id: string } };
  const approve = ['approve', task.id, '--server', url];
  await until(async () => (await own.main([...approve, '--json'], { env })).stdout.includes('"question"'));
  const approving = own.start(approve, { env, terminal: SIZE });
  await approving.waitFor(/command: touch made[\s\S]*why not:$/);
  const main = (...args: string[]) => own.main([...args, '--server', url], { env });
  return { task, approving, main, isMade: () => existsSync(own.folder.at('made')) };
}

test("over a server: a worker's question is read and answered", async () => {
  const { task, approving, main, isMade } = await askOverServer();
  approving.type('y\n');
  expect((await approving.ended).status).toBe(0);
  expect(approving.see()).toMatch(/bash: allowed$/);
  expect(await main('watch', task.id)).toMatchObject({ status: 0 });
  expect(isMade()).toBe(true);
});

test('over a server: a message to a task that asks withdraws its question', async () => {
  const { task, approving, main, isMade } = await askOverServer();
  expect(await main('steer', task.id, 'be brief')).toMatchObject({ status: 0 });
  await approving.waitFor(/asks nothing now/);
  await approving.ended;
  expect(await main('watch', task.id)).toMatchObject({ status: 0 });
  expect(isMade()).toBe(false);
});

test('a server beyond loopback accepts only the host names that it is given', async () => {
  const own = home();
  for (const [names, expected] of [
    [[], { 'app.example.com': 200, 'evil.example': 200 }],
    [['--hostname', 'app.example.com'], { 'app.example.com': 200, 'evil.example': 421 }],
  ] as const) {
    const server = startCommand(own, ['serve', '--host', '0.0.0.0', '--port', '0', ...names], { WHOA_TOKEN: TOKEN });
    const { port } = new URL((await server.waitFor({ type: 'listening' }))['url'] as string);
    for (const [host, status] of Object.entries(expected)) expect(await statusFor(Number(port), host)).toBe(status);
    server.kill('SIGTERM');
    await server.closed;
  }
});

/** Requests tasks under a host name. `fetch` cannot send another host. */
async function statusFor(port: number, host: string): Promise<number | undefined> {
  const headers = { host, authorization: `Bearer ${TOKEN}` };
  const request = get({ host: '127.0.0.1', port, path: '/v1/tasks', headers });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

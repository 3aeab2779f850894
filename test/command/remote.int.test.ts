// Approve and steer from another terminal, in the store and over a server.
import { existsSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { startCommand } from './process.ts';
import { createHome, type Home, type Terminal } from './terminal.ts';

const TOKEN = 'a-token-for-the-tests-of-the-command';
const ASKING = [[{ call: 'bash', input: { command: 'touch made' } }], ['All is well.']];

function home(script: unknown = ASKING): Home {
  const made = createHome({ 'script.json': JSON.stringify(script) });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

/** Starts a run and waits for its question; returns the id of its task. */
async function startAsking(terminal: Terminal): Promise<string> {
  terminal.type(`whoa run --model scripted:script.json --sandbox none 'Go.'; echo "exit:$?"\n`);
  const seen = await terminal.waitFor(/why not:$/);
  return /whoa cancel (\S+)/.exec(seen)![1]!;
}

/** The questions that a task waits for, as a program reads them. */
function questionsOf(own: Home, id: string): { readonly id: string; readonly question: { readonly tool: string } }[] {
  const { stdout } = own.whoa(['approve', id, '--json']);
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; id: string; question: { tool: string } })
    .filter(({ type }) => type === 'question');
}

test('a question is answered from another terminal, which shows all of it, and the first one withdraws it', async () => {
  const own = home();
  const [first, second] = [own.openTerminal(), own.openTerminal()];
  const id = await startAsking(first);
  second.type(`whoa approve ${id}; echo "exit:$?"\n`);
  expect(await second.waitFor(/why not:$/)).toMatch(
    /bash wants to execute in \S+, without a sandbox:\n {2}│ command: touch made\n {2}· always means: this call of bash/,
  );
  expect(existsSync(own.folder.at('made'))).toBe(false);
  const third = own.openTerminal();
  third.type(`whoa watch ${id}\n`);
  await third.waitFor(/\? bash: touch made · to answer: whoa approve t0-/);
  second.type('y\n');
  await second.waitFor(/bash: allowed\nexit:0/);
  expect(await first.waitFor(/exit:0/)).toMatch(/answered from elsewhere: yes\n[\s\S]*All is well\./);
  expect(existsSync(own.folder.at('made'))).toBe(true);
});

test('a question that is answered at the run itself is withdrawn in the other terminal', async () => {
  const own = home();
  const [first, second] = [own.openTerminal(), own.openTerminal()];
  const id = await startAsking(first);
  second.type(`whoa approve ${id}; echo "exit:$?"\n`);
  await second.waitFor(/why not:$/);
  first.type('use printf\n');
  expect(await second.waitFor(/exit:1/)).toContain('asks nothing now');
  expect(await first.waitFor(/exit:0/)).toContain('denied: use printf');
  expect(existsSync(own.folder.at('made'))).toBe(false);
});

test('a cancel withdraws the question in both terminals', async () => {
  const own = home();
  const [first, second] = [own.openTerminal(), own.openTerminal()];
  const id = await startAsking(first);
  second.type(`whoa approve ${id}; echo "exit:$?"\n`);
  await second.waitFor(/why not:$/);
  expect(own.whoa(['cancel', id]).status).toBe(0);
  await first.waitFor(/exit:130/);
  await second.waitFor(/exit:1/);
  expect(existsSync(own.folder.at('made'))).toBe(false);
});

test('an answer without a terminal names the question it read, once', async () => {
  const own = home();
  const terminal = own.openTerminal();
  const id = await startAsking(terminal);
  const shown = own.whoa(['approve', id]);
  expect(shown.stdout).toMatch(
    / {2}│ command: touch made\n[\s\S]*answer it with: whoa approve \S+ --question \S+ --yes/,
  );
  expect(own.whoa(['approve', id, '--yes'])).toMatchObject({ status: 2 });
  expect(own.whoa(['approve', id, '--question', 'guessed', '--yes'])).toMatchObject({ status: 1 });
  const [asked] = questionsOf(own, id);
  expect(asked).toMatchObject({ question: { tool: 'bash' } });
  const answer = ['approve', id, '--question', asked!.id, '--no', '--why', 'not today'];
  expect(own.whoa(answer)).toMatchObject({ status: 0, stdout: expect.stringContaining('bash: denied') as string });
  expect(await terminal.waitFor(/exit:0/)).toContain('denied: not today');
  expect(own.whoa(answer)).toMatchObject({ status: 1 });
  expect(questionsOf(own, id)).toEqual([]);
});

test('a run is steered from another terminal, and takes no more messages when it has ended', async () => {
  const own = home([[{ call: 'bash', input: { command: 'until [ -e go ]; do sleep 0.1; done' } }], ['All is well.']]);
  const terminal = own.openTerminal();
  terminal.type(`whoa run --yes --model scripted:script.json --sandbox none 'Go.'; echo "exit:$?"\n`);
  const [, id = ''] = /whoa cancel (\S+)/.exec(await terminal.waitFor(/▸ bash/))!;
  expect(own.whoa(['steer', id, 'be brief'], { input: 'and kind' })).toMatchObject({
    status: 0,
    stdout: `${id} reads the message before its next step\n`,
  });
  own.folder.write('go', '');
  expect(await terminal.waitFor(/exit:0/)).toMatch(/» be brief ⏎ and kind/);
  expect(own.whoa(['steer', id, 'too late'])).toMatchObject({
    status: 1,
    stdout: `${id} takes no more messages: it is success\n`,
  });
  expect(own.whoa(['steer', id])).toMatchObject({ status: 2 });
  expect(own.whoa(['steer', 'none', 'hello'])).toMatchObject({ status: 2 });
});

test('over a server: the question of a worker is read and answered, and its task steered', async () => {
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
  const terminal = own.openTerminal();
  const remote = `WHOA_TOKEN=${TOKEN} whoa approve ${task.id} --server ${url}`;
  terminal.type(
    `until ${remote} --json </dev/null | grep -q '"question"'; do sleep 0.2; done; clear; ${remote}; echo "exit:$?"\n`,
  );
  await terminal.waitFor(/command: touch made[\s\S]*why not:$/);
  expect(own.whoa(['steer', task.id, 'be brief', '--server', url], { env })).toMatchObject({ status: 0 });
  terminal.type('y\n');
  await terminal.waitFor(/bash: allowed\nexit:0/);
  expect(own.whoa(['watch', task.id, '--server', url], { env })).toMatchObject({ status: 0 });
  expect(existsSync(own.folder.at('made'))).toBe(true);
});

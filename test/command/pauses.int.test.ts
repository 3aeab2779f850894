// A pause that was forgotten: everything that would wait for it reports it, and how it ends.
import { expect, onTestFinished, test } from 'vitest';
import { ask, edit } from './acp-editor.ts';
import { createHome, type Home } from './terminal.ts';

const ARGUMENTS = ['--model', 'scripted:script.json', '--yes', '--sandbox', 'none'];
const WHY = /tenant local is paused, so no task of it starts; to end the pause: whoa resume --tenant local/;
const SIZE = { columns: 110, rows: 40 };

/** A home whose tenant is halted. */
async function halted(): Promise<Home> {
  const own = createHome({ 'script.json': JSON.stringify([['Well.'], ['Well again.']]) });
  onTestFinished(() => own[Symbol.dispose]());
  expect(await own.main(['halt', '--tenant', 'local'])).toMatchObject({ status: 0 });
  return own;
}

const resume = (own: Home) => own.main(['resume', '--tenant', 'local']);

test('a run without a terminal fails, and leaves no task', async () => {
  const own = await halted();
  const { status, stderr } = await own.main(['run', ...ARGUMENTS, 'Is all well?']);
  expect(stderr).toMatch(WHY);
  expect(status).toBe(1);
  const json = await own.main(['run', '--json', ...ARGUMENTS, 'Is all well?']);
  expect(JSON.parse(json.stdout.trim().split('\n').at(-1)!)).toMatchObject({
    type: 'error',
    message: expect.stringMatching(WHY) as string,
  });
  expect((await own.main(['tasks', '--json'])).stdout).toBe('');
  await resume(own);
  expect(await own.main(['run', ...ARGUMENTS, 'Is all well?'])).toMatchObject({ status: 0, stdout: 'Well.\n' });
});

test('a run in a terminal says that it waits, and starts when the pause ends; whoa tasks shows both', async () => {
  const own = await halted();
  const run = own.start(['run', ...ARGUMENTS, 'Is all well?'], { terminal: SIZE });
  await run.waitFor(WHY);
  await expect.poll(async () => (await own.main(['tasks'])).stdout).toMatch(/ paused .*Is all well\?/);
  expect((await own.main(['tasks'])).stderr).toMatch(WHY);
  await resume(own);
  expect(await run.ended).toMatchObject({ status: 0 });
  expect((await own.main(['tasks'])).stderr).toBe('');
});

test('a run that waits for a pause is stopped by Ctrl-C', async () => {
  const own = await halted();
  const run = own.start(['run', ...ARGUMENTS, 'Is all well?'], { terminal: SIZE });
  await run.waitFor(WHY);
  await expect.poll(async () => (await own.main(['tasks'])).stdout).toMatch(/ paused /);
  run.signal('SIGINT');
  expect(await run.ended).toMatchObject({ status: 130 });
});

test('a chat says that it waits, and a worker when it starts', async () => {
  const own = await halted();
  const terminal = own.openTerminal();
  terminal.type(`whoa chat ${ARGUMENTS.join(' ')}\n`);
  await terminal.waitFor(/\n›$/);
  terminal.type('Is all well?\n');
  await terminal.waitFor(WHY);
  await resume(own);
  await terminal.waitFor(/Well\.\n✔/);
  await own.main(['pause', '--tenant', 'local']);
  const other = own.openTerminal();
  other.type(`whoa worker ${ARGUMENTS.join(' ')}; echo "exit:$?"\n`);
  await other.waitFor(/takes tasks for/);
  expect(other.see()).toMatch(WHY);
  other.press('C-c');
  await other.waitFor(/exit:0/);
});

test('a prompt in an editor fails with the reason, leaves no task, and works after the pause', async () => {
  const own = await halted();
  const editor = edit(own, ['acp', ...ARGUMENTS]);
  const session = await editor.start();
  const { error } = await editor.send('session/prompt', ask(session, 'Is all well?'));
  expect(error?.message).toMatch(WHY);
  expect(editor.errors()).toMatch(WHY);
  expect((await own.main(['tasks', '--json'])).stdout).toBe('');
  await resume(own);
  const { result } = await editor.send('session/prompt', ask(session, 'Is all well?'));
  expect(result).toMatchObject({ stopReason: 'end_turn' });
  expect(await editor.end()).toBe(0);
});

test("whoa doctor lists pauses: that of 'whoa run' must end first", async () => {
  const own = await halted();
  const env = { OPENAI_API_KEY: 'any' };
  await own.main(['pause', '--agent', 'else']);
  const { status, stdout } = await own.main(['doctor'], { env });
  expect(stdout).toMatch(/✘ tenant local: paused.*\n.*whoa resume --tenant local\n/);
  expect(stdout).toMatch(/– agent else: paused.*\n.*whoa resume --agent else\n/);
  expect(status).toBe(1);
  await resume(own);
  expect(await own.main(['doctor'], { env })).toMatchObject({ status: 0 });
});

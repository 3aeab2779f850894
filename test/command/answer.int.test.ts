// `whoa approve` asks for the answer to an agent's question at a terminal.
import { createTaskStore, type TaskRecord } from '@whoa/tasks';
import { expect, onTestFinished, test } from 'vitest';
import { createHome } from './terminal.ts';

const SIZE = { columns: 110, rows: 40 };
const ROOM = { type: 'string', enum: ['Oak', 'Elm'] };

/** A task that asks one question for each schema. */
async function setUp(...schemas: readonly object[]) {
  const home = createHome();
  onTestFinished(() => home[Symbol.dispose]());
  await home.main(['tasks']);
  const store = createTaskStore({ backend: 'sqlite', file: home.folder.at('state/whoa/tasks.db') });
  onTestFinished(() => store[Symbol.asyncDispose]());
  const { task } = (await store.create({ tenant: 'local', agent: 'a', input: 'Go.' })) as { task: TaskRecord };
  await store.claim(task.id, { session: 's', claim: 'c', worker: 'w', leaseMs: 600_000 });
  const asks = schemas.map((_, index) => {
    const callId = `q${index}`;
    return { id: `${task.id}.${callId}`, callId, kind: 'answer' as const, shown: 'x' };
  });
  const events = asks.map(({ id, callId }, index) => {
    const fields = [{ name: 'question', lines: ['Which one?'] }];
    const question = {
      callId,
      tool: 'choose',
      effects: 'read',
      title: 'choose',
      fields,
      alwaysScope: 'this call only',
    };
    return { type: 'question-asked', kind: 'answer', id, at: 1, question, input: {}, schema: schemas[index] };
  });
  await store.append({ id: task.id, epoch: 1, session: 's', claim: 'c' }, { after: 0, events, asks } as never);
  const readAnswers = async () =>
    (await store.get({ tenant: 'local', id: task.id }))!.questions!.map(({ answer }) => answer?.value);
  return { home, store, id: task.id, readAnswers };
}

test.each([
  [ROOM, /· one of: Oak, Elm/, ['Pine', 'Elm'], 'Elm'],
  [{ type: 'string' }, /· text/, ['', '42'], '42'],
  [{ type: 'number' }, /· a number/, ['soon', '4.5'], 4.5],
  [{ type: 'integer' }, /· a whole number/, ['4.5', '4'], 4],
  [{ type: 'boolean' }, /· yes or no/, ['maybe', 'No'], false],
  [{ enum: [1, true, null] }, /· one of: 1, true, null/, ['2', 'null'], null],
  [
    { type: 'object', properties: { day: { type: 'number' } }, required: ['day'] },
    /· JSON: \{ "day": number \}/,
    ['{"day":"soon"}', '{"day":3}'],
    { day: 3 },
  ],
])(
  '`whoa approve` repeats its prompt until the answer matches %j',
  async (schema, expected, [wrong = '', right = ''], answer) => {
    const { home, id, readAnswers } = await setUp(schema);
    const approving = home.start(['approve', id], { terminal: SIZE });
    expect(await approving.waitFor(/your answer:$/)).toMatch(/choose asks:\r?\n {2}│ question: Which one\?/);
    expect(approving.see()).toMatch(expected);
    approving.type(`${wrong}\n`);
    await approving.waitFor(/not sent: [\s\S]*your answer:$/);
    expect(await readAnswers()).toEqual([undefined]);
    approving.type(`${right}\n`);
    expect((await approving.ended).status).toBe(0);
    expect(approving.see()).toMatch(/choose: answered$/);
    expect(await readAnswers()).toEqual([{ answer }]);
  },
);

test('Ctrl-C and the end of the input leave the question open, and the next one asks again', async () => {
  const { home, id, readAnswers } = await setUp(ROOM);
  const terminal = home.openTerminal(SIZE);
  terminal.type(`whoa approve ${id}; echo "first:$?"\n`);
  await terminal.waitFor(/your answer:$/);
  terminal.type('Oa');
  terminal.press('C-c');
  await terminal.waitFor(/first:\d+|\$$/);
  terminal.press('Enter');
  terminal.type(`clear; whoa approve ${id}; echo "second:$?"\n`);
  await terminal.waitFor(/your answer:$/);
  terminal.press('C-d');
  expect(await terminal.waitFor(/second:1/)).toContain('choose: not answered; the question stays open');
  expect(await readAnswers()).toEqual([undefined]);
  terminal.type(`clear; whoa approve ${id}; echo "third:$?"\n`);
  await terminal.waitFor(/your answer:$/);
  terminal.type('Oak\n');
  await terminal.waitFor(/choose: answered\nthird:0/);
  expect(await readAnswers()).toEqual([{ answer: 'Oak' }]);
});

test('`whoa approve` finds a question whose worker has gone, no matter how many newer tasks there are', async () => {
  const { home, id, store } = await setUp(ROOM);
  await store.release({ id, epoch: 1, session: 's', claim: 'c' });
  for (let i = 0; i < 1_001; i++) {
    const { task } = (await store.create({ tenant: 'local', agent: 'a', input: 'Go.' })) as { task: TaskRecord };
    await store.claim(task.id, { session: 's', claim: `c${i}`, worker: 'w', leaseMs: 600_000 });
  }
  const { stdout: listed } = await home.main(['approve']);
  const [, answering = ''] = /^\S+ a asks: Go\. · to answer: whoa (approve t-\S+)\n$/.exec(listed) ?? [];
  expect(await home.main(answering.split(' '))).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('Which one?') as string,
  });
  for (const more of [[], ['--all-tenants']]) {
    const { stdout } = await home.main(['approve', '--json', ...more]);
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
    ).toEqual([{ type: 'asking', id, agent: 'a', title: 'Go.', waiting: 1 }]);
  }
});

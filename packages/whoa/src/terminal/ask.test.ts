import { PassThrough } from 'node:stream';
import type { ApprovalQuestion } from '@whoa/core/approval';
import { expect, test } from 'vitest';
import { createTerminalAsk, WITHDRAWN } from './ask.ts';
import { TypedLines } from './input/typed-lines.ts';
import { Screen } from './screen.ts';

const QUESTION: ApprovalQuestion = {
  callId: 'c',
  tool: 'bash',
  effects: 'execute',
  title: 'bash: make',
  cwd: '/srv',
  sandbox: 'none',
  fields: [{ name: 'command', lines: ['make'] }],
  alwaysScope: 'this call of bash with exactly this input, until this run ends',
};

function setUp({ isTTY = true, columns = 62, rows = 24 } = {}) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = Object.assign(new PassThrough(), { columns, rows });
  let seen = '';
  const waiting = new Set<() => void>();
  output.on('data', (chunk: Buffer) => {
    // A row that is drawn again replaces itself.
    seen = (seen + chunk.toString()).replaceAll(/[^\n]*\r\p{Cc}\[K/gu, '');
    for (const look of waiting) look();
  });
  const screen = new Screen({ stdout: output, stderr: output });
  const interrupts: string[] = [];
  const lines = new TypedLines({ onInterrupt: () => interrupts.push('stop') }, input);
  const ask = createTerminalAsk({ screen, input, lines: () => lines });
  return {
    input,
    interrupts,
    ask: (question: Partial<ApprovalQuestion> = {}, signal = new AbortController().signal) =>
      ask({ ...QUESTION, ...question }, { signal }),
    seen: () => seen,
    /** Waits until a text was printed `times` times. */
    shown: (text: string, times = 1) =>
      new Promise<void>((resolve) => {
        const look = (): void => {
          if (seen.split(text).length <= times) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
  };
}

test.each([
  ['y\n', { decision: 'yes' }],
  ['YES\n', { decision: 'yes' }],
  ['a\n', { decision: 'always' }],
  ['n\n', { decision: 'no' }],
  ['\n', { decision: 'no' }],
  ['use make instead\n', { decision: 'no', why: 'use make instead' }],
])('%j is answered %j', async (line, answer) => {
  const { input, ask, shown } = setUp();
  const asked = ask();
  await shown('why not: ');
  input.write(line);
  expect(await asked).toEqual(answer);
});

test('the command, its folder and the scope of always are on the screen before the prompt', async () => {
  const { input, ask, shown, seen } = setUp();
  const asked = ask({ why: 'a rule asks' });
  await shown('why not: ');
  expect(seen()).toBe(
    [
      '? bash wants to execute in /srv, without a sandbox:',
      '  │ command: make',
      '  · asked because a rule asks',
      '  · always means: this call of bash with exactly this input, ',
      '  · until this run ends',
      '  [y]es, [n]o, [a]lways, or say why not: ',
    ].join('\n'),
  );
  input.write('n\n');
  await asked;
});

test('lines and partial lines that were typed before the question do not answer it', async () => {
  const { input, ask, shown } = setUp();
  input.write('y\ny\n');
  input.write('y');
  const asked = ask();
  await shown('why not: ');
  input.write('n\n');
  expect(await asked).toEqual({ decision: 'no' });
  input.write('y\n');
  const next = ask();
  await shown('why not: ', 2);
  input.write('no, make check\n');
  expect(await next).toEqual({ decision: 'no', why: 'no, make check' });
});

test('text that is typed while a slow terminal prints the question does not answer it', async () => {
  const { input, ask, shown } = setUp();
  // A terminal changes its mode after it has shown the output; until then users can type.
  const setRawMode = (isRaw: boolean): void => void (isRaw || input.write('y\r'));
  Object.assign(input, { setRawMode });
  const asked = ask();
  await shown('why not: ');
  input.write('n\n');
  expect(await asked).toEqual({ decision: 'no' });
});

test('a long question is paged, and only its last page takes a yes', async () => {
  const { input, ask, shown, seen } = setUp({ rows: 14 });
  const lines = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const asked = ask({ fields: [{ name: 'command', lines }] });
  await shown('page 1 of 3');
  expect(seen()).not.toContain('line 19');
  input.write('y\ny\ny\n');
  await shown('page 2 of 3');
  input.write('a\n');
  await shown('why not: ');
  for (const line of lines) expect(seen()).toContain(`  │   ${line}\n`);
  input.write('y\n');
  expect(await asked).toEqual({ decision: 'yes' });
});

test('a no on the first page is one', async () => {
  const { input, ask, shown } = setUp({ rows: 12 });
  const asked = ask({ fields: [{ name: 'command', lines: Array(30).fill('x') as string[] }] });
  await shown('page 1 of');
  input.write('too long\n');
  expect(await asked).toEqual({ decision: 'no', why: 'too long' });
});

test('a line that is too long never begins a new line', async () => {
  const { input, ask, shown, seen } = setUp({ columns: 40 });
  const evil = `echo ${'x'.repeat(70)}  [y]es, [n]o, [a]lways, or say why not: 日本日本日本日本日本日本日本`;
  const asked = ask({ fields: [{ name: 'command', lines: [evil] }] });
  await shown(`${'\n'}  [y]es, [n]o`);
  const rows = seen()
    .split(/\n(?= {2}\[y\]es)/)[0]!
    .split('\n')
    .slice(1)
    .filter((row) => !row.startsWith('  · '));
  expect(rows.filter((row) => !row.startsWith('  │ '))).toEqual([]);
  expect(rows.map((row) => row.slice(4)).join('')).toBe(`command: ${evil}`);
  input.write('n\n');
  await asked;
});

test('a cancel takes the question away, also before it is asked, and the next one is asked again', async () => {
  const { input, ask, shown } = setUp();
  const stop = new AbortController();
  const asked = ask({}, stop.signal);
  await shown('why not: ');
  stop.abort();
  expect(await asked).toMatchObject({ decision: 'no', why: expect.stringContaining('cancelled') as string });
  expect(await ask({}, stop.signal)).toMatchObject({ why: expect.stringContaining('cancelled') as string });
  const next = ask();
  await shown('why not: ', 2);
  input.write('y\n');
  expect(await next).toEqual({ decision: 'yes' });
});

test.each([
  ['Esc', '\x1b'],
  ['Ctrl-C', '\x03'],
])('%s stops the run and is not an answer, before the prompt and at it', async (_, key) => {
  const { input, interrupts, ask, shown, seen } = setUp();
  input.write(key);
  const stop = new AbortController();
  const asked = ask({}, stop.signal);
  await shown('why not: ');
  input.write(key);
  await expect.poll(() => interrupts.length).toBe(2);
  stop.abort();
  expect(await asked).toBe(WITHDRAWN);
  expect(seen()).not.toContain('U+');
});

test('an answer is edited, and a paste is one answer', async () => {
  const { input, ask, shown } = setUp();
  const asked = ask();
  await shown('why not: ');
  input.write('mke check\x1b[H\x1b[Ca\x05 and \x1b[200~then\rmake\x1b[201~\r');
  expect(await asked).toEqual({ decision: 'no', why: 'make check and then\nmake' });
});

test('the end of the input is a no, and without a terminal no one is asked', async () => {
  const { input, ask, shown } = setUp();
  const asked = ask();
  await shown('why not: ');
  input.end();
  expect(await asked).toEqual({ decision: 'no' });
  expect(await setUp({ isTTY: false }).ask()).toMatchObject({
    decision: 'no',
    why: expect.stringMatching(/not a terminal/) as string,
  });
});

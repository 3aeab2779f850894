import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { hostileStrings } from '../../../../../test/hostile-strings.ts';
import { Screen } from '../screen.ts';
import { TypedLines, type TypedLinesHandlers } from './typed-lines.ts';

function setUp() {
  const happened: string[] = [];
  const shown: string[] = [];
  const modes: boolean[] = [];
  let typed = '';
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (isRaw: boolean) => modes.push(isRaw) });
  const output = { isTTY: true, columns: 100, rows: 30, write: () => true, on: () => undefined };
  const screen = new Screen({ stdout: output, stderr: output });
  const handlers: TypedLinesHandlers = {
    onChange(text, cursor) {
      typed = text;
      screen.input(text, cursor);
    },
    onLine(text, labelled) {
      happened.push(text);
      shown.push(labelled);
    },
    onInterrupt: (key) => happened.push(`<${key}>`),
    onEnd: () => happened.push('<end>'),
    onClosed: () => happened.push('<closed>'),
  };
  const lines = new TypedLines(handlers, input, output);
  onTestFinished(() => lines[Symbol.dispose]());
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const type = async (text: string): Promise<void> => {
    input.write(text);
    await turn();
  };
  return { lines, typed: () => typed, screen, happened, shown, modes, input, type, turn };
}

const paste = (text: string): string => `\x1b[200~${text}\x1b[201~`;
const LONG = 'a line\r'.repeat(1_000);

test.each<[string, string, string[]]>([
  ['a line', 'hello\r', ['hello']],
  ['two lines', 'one\rtwo\n', ['one', 'two']],
  ['backspace, over a character of two halves too', 'hex\x7fy😀\x7f\r', ['hey']],
  ['Ctrl-W', 'one two\x17\r', ['one']],
  ['Ctrl-U', 'one\x15two\r', ['two']],
  ['Left', 'one two\x1b[D\x1b[D\x1b[DX\r', ['one Xtwo']],
  ['Home, Right, Delete and End', 'one\x1b[H\x1b[C\x1b[3~\x1b[F!\r', ['oe!']],
  ['Ctrl-A, Ctrl-K and Ctrl-Y', 'one\x01two \x0b\x05\x19\r', ['two one']],
  ['Alt-B and Ctrl-E', 'one two\x1bbX\x05!\r', ['one Xtwo!']],
  ['an empty line', ' \r', ['']],
  ['Ctrl-C', 'half\x03', ['<ctrl-c>']],
  ['Ctrl-D in an empty line', '\x04', ['<end>']],
  ['Ctrl-D in a line deletes', 'half\x01\x04\r', ['alf']],
  ['Up recalls earlier lines', 'one\rtwo\r\x1b[A\x1b[A\r', ['one', 'two', 'one']],
  ['unknown keys are ignored', 'a\x1b[15~\x1bOP\x1d\x00b\t\r', ['ab']],
  ['Alt-Enter adds a line feed', 'one\x1b\rtwo\r', ['one\ntwo']],
  ['a paste of lines', `${paste('one\r\ntwo\rthree')}\r`, ['one\ntwo\nthree']],
  ['a long paste between words', `see ${paste(LONG)} please\r`, [`see ${LONG.replaceAll('\r', '\n')} please`]],
  ['two long pastes', `${paste(LONG)}${paste(`${LONG}b`)}\r`, [`${LONG}${LONG}b`.replaceAll('\r', '\n')]],
  ['a paste with our own characters', `${paste('a⏎b\u2028[paste 1: 2 lines]')}\r`, ['a⏎b\u2028[paste 1: 2 lines]']],
  ['backspace removes a long paste', `a${paste(LONG)}\x7fb\r`, ['ab']],
  ['a long paste is recalled', `${paste(LONG)}\r\x1b[A\r`, Array(2).fill(LONG.replaceAll('\r', '\n').trim())],
])('%s', async (_, typed, lines) => {
  const { happened, type } = setUp();
  await type(typed);
  expect(happened).toEqual(lines);
});

test('a long paste is shown as a label', async () => {
  const { shown, typed, type } = setUp();
  await type(`see ${paste(LONG)}${paste('x'.repeat(501))}`);
  expect(typed()).toBe('see [paste 1: 1,000 lines][paste 2: 501 characters]');
  await type(`\x1b\rgo\r`);
  expect(shown).toEqual(['see [paste 1: 1,000 lines][paste 2: 501 characters]\ngo']);
});

test('a paste of 100 KB takes less than 100 ms, and Ctrl-C right after it is seen', async () => {
  const { happened, input, turn, typed } = setUp();
  const text = paste(`${'x'.repeat(49)}\r`.repeat(2_000));
  const before = process.cpuUsage();
  for (let at = 0; at < text.length; at += 4_095) input.write(text.slice(at, at + 4_095));
  input.write('\x03');
  while (happened.length === 0) await turn();
  const { user, system } = process.cpuUsage(before);
  expect(happened).toEqual(['<ctrl-c>']);
  expect((user + system) / 1_000).toBeLessThan(100);
  expect(typed()).toBe('[paste 1: 2,000 lines]');
});

test('Esc is reported', async () => {
  const { happened, type } = setUp();
  await type('half\x1b');
  await expect.poll(() => happened.length).toBeGreaterThan(0);
  expect(happened).toEqual(['<escape>']);
});

test('a question has its own line, and the unfinished one is kept', async () => {
  const { lines, screen, typed, happened, type, turn } = setUp();
  const held = screen.hold();
  await type('half');
  const asked = lines.ask('why? ', { held, signal: new AbortController().signal });
  for (let turns = 0; turns < 10; turns++) await turn();
  await type('y\r');
  expect(await asked).toBe('y');
  held[Symbol.dispose]();
  lines.show();
  expect({ typed: typed(), happened }).toEqual({ typed: 'half', happened: [] });
  await type('\r\x1b[A\r');
  expect(happened).toEqual(['half', 'half']);
});

test('the terminal is restored', () => {
  const { lines, modes, input } = setUp();
  lines[Symbol.dispose]();
  lines[Symbol.dispose]();
  expect(modes).toEqual([true, false]);
  expect(input.isPaused()).toBe(true);
});

test('the end of the input is reported', async () => {
  const { happened, input, turn } = setUp();
  input.end();
  await turn();
  await turn();
  expect(happened).toEqual(['<closed>']);
});

test('pasted text keeps no control characters except tabs and line feeds', async () => {
  const { happened, type } = setUp();
  for (const text of hostileStrings.filter((one) => !one.includes('\x1b'))) await type(`${paste(text)}\r`);
  for (const text of happened) expect(text).toMatch(/^(?:[^\p{Cc}]|[\t\n])*$|^<ctrl-c>$/u);
});

import { PassThrough } from 'node:stream';
import { expect, onTestFinished, test } from 'vitest';
import { hostileStrings } from '../../../../../test/hostile-strings.ts';
import { LineEditor } from './line-editor.ts';

function setUp() {
  const happened: string[] = [];
  const modes: boolean[] = [];
  const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (isRaw: boolean) => modes.push(isRaw) });
  const editor = new LineEditor({
    input,
    output: { isTTY: false, write: () => true, on: () => undefined },
    onChange: () => {},
    onLine: (line) => happened.push(line),
    onInterrupt: (key) => happened.push(`<${key}>`),
    onEnd: () => happened.push('<end>'),
    onClosed: () => happened.push('<closed>'),
  });
  onTestFinished(() => editor[Symbol.dispose]());
  editor.resume();
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const type = async (text: string): Promise<void> => {
    input.write(text);
    await turn();
  };
  return { editor, happened, modes, type, input, turn };
}

test.each<[string, string, string[]]>([
  ['a line', 'hello\r', ['hello']],
  ['two lines', 'one\rtwo\n', ['one', 'two']],
  ['backspace, also over a character of two halves', 'hex\u007fy😀\u007f\r', ['hey']],
  ['Ctrl-W and Ctrl-U', 'one two\u0017\r', ['one']],
  ['Ctrl-U', 'one\u0015two\r', ['two']],
  ['nothing', ' \r\r', []],
  ['Ctrl-C', 'half\u0003', ['<ctrl-c>']],
  ['Ctrl-D in an empty line', '\u0004', ['<end>']],
  ['Ctrl-D in a line', 'half\u0004', []],
  ['the line before, by the arrow', 'one\rtwo\r\u001b[A\u001b[A\r', ['one', 'two', 'one']],
  ['other keys', 'a\u001b[C\u001b[15~\u001bOPb\t\r', ['ab']],
  ['a paste of lines', '\u001b[200~one\rtwo\u001b[201~\r', ['one\ntwo']],
])('%s', async (_, typed, lines) => {
  const { happened, type } = setUp();
  await type(typed);
  expect(happened).toEqual(lines);
});

test('the terminal is given back for a question, with the line kept, and at the end', async () => {
  const { editor, happened, modes, type } = setUp();
  await type('half');
  await editor.whilePaused(async () => {
    expect(modes.at(-1)).toBe(false);
    await type('y\r');
    expect(happened).toEqual([]);
  });
  expect(modes.at(-1)).toBe(true);
  expect(editor.text).toBe('half');
  editor[Symbol.dispose]();
  editor[Symbol.dispose]();
  expect(modes).toEqual([true, false, true, false]);
});

test('the end of the input is told', async () => {
  const { happened, input, turn } = setUp();
  input.end();
  await turn();
  await turn();
  expect(happened).toEqual(['<closed>']);
});

test('whatever is pasted, no control character but tabs and line breaks becomes part of a line', async () => {
  const { editor, type } = setUp();
  for (const text of hostileStrings.filter((one) => !one.includes('\u001b'))) {
    await type(`\u001b[200~${text}\u001b[201~`);
    expect(editor.text).toMatch(/^(?:[^\p{Cc}]|[\t\n])*$/u);
    editor.clear();
  }
});

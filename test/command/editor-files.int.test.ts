import { symlinkSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { type EditorFiles, openEditor } from './editor.ts';
import { createHome, type Home } from './terminal.ts';

interface Call {
  readonly call: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** A home whose model makes these calls, one at a time. */
function home(calls: readonly Call[], files: Readonly<Record<string, string>> = {}): Home {
  const script = JSON.stringify([...calls.map((call) => [call]), ['Done.']]);
  const made = createHome({ 'script.json': script, ...files });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const read = (path: string): Call => ({ call: 'read', input: { path } });
const write = (path: string, content: string): Call => ({ call: 'write', input: { path, content } });
const edit = (path: string, oldText: string, newText: string): Call => ({
  call: 'edit',
  input: { path, edits: [{ oldText, newText }] },
});

/** An editor's buffers, all of them unsaved. */
function unsaved(buffers: Map<string, string>): Required<Pick<EditorFiles, 'read' | 'write'>> {
  return {
    read: (path) => {
      const text = buffers.get(path);
      if (text === undefined) throw new Error(`no buffer for ${path}`);
      return text;
    },
    write: (path, content) => {
      buffers.set(path, content);
    },
  };
}

/** Runs a prompt to its end; answers how each call ended. */
async function ends(own: Home, files?: EditorFiles) {
  const editor = await openEditor(own, files);
  expect(await editor.prompt('Go.')).toMatchObject({ stopReason: 'end_turn' });
  return editor.shown.flatMap((update) =>
    update.sessionUpdate === 'tool_call_update' && (update.status === 'completed' || update.status === 'failed')
      ? [update]
      : [],
  );
}

test('unsaved text is read, edited and replaced in the editor, and the disk is left alone', async () => {
  const own = home(
    [read('a.txt'), edit('a.txt', 'unsaved', 'edited'), write('a.txt', 'new\n'), write('sub/b.txt', 'b\n')],
    {
      'a.txt': 'saved\n',
    },
  );
  const buffers = new Map([[own.folder.at('a.txt'), 'one\nunsaved\n']]);
  const [seen, edited, replaced, created] = await ends(own, unsaved(buffers));
  expect(seen).toMatchObject({ status: 'completed', rawOutput: { path: 'a.txt', firstLine: 1, lines: 2, bytes: 12 } });
  expect(JSON.stringify(seen!.content)).toContain('one\\nunsaved');
  expect(edited).toMatchObject({
    status: 'completed',
    rawOutput: { path: 'a.txt', replacements: 1, changedLines: [2] },
  });
  expect(edited!.rawOutput).toMatchObject({ diff: expect.stringContaining('-unsaved\n+edited\n') as string });
  expect(replaced!.rawOutput).toMatchObject({
    path: 'a.txt',
    created: false,
    diff: expect.stringContaining('-one\n-edited\n+new\n') as string,
  });
  expect(created!.rawOutput).toMatchObject({ path: 'sub/b.txt', created: true, bytes: 2 });
  expect(Object.fromEntries(buffers)).toEqual({
    [own.folder.at('a.txt')]: 'new\n',
    [own.folder.at('sub/b.txt')]: 'b\n',
  });
  expect(own.folder.read('a.txt')).toBe('saved\n');
});

test('an editor that offers no files, or only one way, leaves the rest to the disk', async () => {
  const calls = [edit('a.txt', 'saved', 'edited')];
  const alone = home(calls, { 'a.txt': 'saved\n' });
  expect(await ends(alone)).toMatchObject([{ status: 'completed' }]);
  expect(alone.folder.read('a.txt')).toBe('edited\n');

  const written = home(calls, { 'a.txt': 'saved\n' });
  const buffers = new Map<string, string>();
  expect(await ends(written, { write: unsaved(buffers).write })).toMatchObject([{ status: 'completed' }]);
  expect([...buffers.values()]).toEqual(['edited\n']);
  expect(written.folder.read('a.txt')).toBe('saved\n');
});

test('the editor never gets requests for files outside the folder, and its rejections are reported', async () => {
  const own = home([read('../secret'), read('out'), write('/etc/whoa', 'x'), edit('out', 'a', 'b'), read('a.txt')], {
    'a.txt': 'saved\n',
  });
  symlinkSync('/etc/hostname', own.folder.at('out'));
  const asked: string[] = [];
  const refuse = (path: string): never => {
    asked.push(path);
    throw new Error('private');
  };
  const results = await ends(own, { read: refuse, write: refuse });
  expect(results.map(({ status }) => status)).toEqual(Array(5).fill('failed'));
  expect(JSON.stringify(results.slice(0, 4).map(({ content }) => content)).match(/leads outside/g)).toHaveLength(4);
  expect(JSON.stringify(results[4]!.content)).toContain('The editor did not read the file: ');
  expect(asked).toEqual([own.folder.at('a.txt')]);
});

test.each([7, undefined, null])('rejects a non-text answer from the editor (%s)', async (content) => {
  const [result] = await ends(home([read('a.txt')], { 'a.txt': 'saved\n' }), { read: () => content as never });
  expect(result!.status).toBe('failed');
  expect(JSON.stringify(result!.content)).toContain('The editor did not read the file: the response has no text');
});

test.each([
  ['read', read('a.txt'), 'interrupted'],
  ['edit', edit('a.txt', 'saved', 'edited'), 'unknown'],
  ['write', write('a.txt', 'new'), 'unknown'],
])(
  'a cancel ends a call of %s that the editor never answers, and the editor is notified',
  async (_name, call, state) => {
    const own = home([call], { 'a.txt': 'saved\n' });
    const { promise: asked, resolve: beAsked } = Promise.withResolvers<AbortSignal>();
    const hang = (signal: AbortSignal): Promise<never> => {
      beAsked(signal);
      return new Promise(() => {});
    };
    const files: EditorFiles = {
      read: (_path, signal) => (call.call === 'read' ? hang(signal) : 'saved\n'),
      write: (_path, _content, signal) => hang(signal),
    };
    const editor = await openEditor(own, files);
    const answer = editor.prompt('Go.');
    const signal = await asked;
    const heard = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await editor.cancel();
    expect(await answer).toMatchObject({ stopReason: 'cancelled' });
    await heard;
    expect(editor.shown).toContainEqual(
      expect.objectContaining({
        status: 'failed',
        rawOutput: expect.objectContaining({ cancelled: true, state }) as object,
      }),
    );
    expect(own.folder.read('a.txt')).toBe('saved\n');
  },
);

test('only the wanted lines of a large file are requested, and a response that is too long is reported without waiting for it', async () => {
  const lines = Array.from({ length: 700_000 }, (_, i) => `line ${i + 1} ${'x'.repeat(40)}`);
  const wanted: Call = { call: 'read', input: { path: 'big.log', offset: 500_000, limit: 2 } };
  const own = home([wanted, edit('big.log', 'line 7 ', 'line seven ')], { 'big.log': lines.join('\n') });
  const asked: unknown[] = [];
  const [part, whole] = await ends(own, {
    read: (_, __, { line, limit }) => {
      asked.push([line, limit]);
      return line === undefined ? 'y'.repeat(33 * 1024 * 1024) : lines.slice(line - 1, line - 1 + limit!).join('\n');
    },
  });
  expect(asked).toEqual([[500_000, 3]]);
  expect(JSON.stringify(part!.content)).toMatch(
    /line 500000 x+\\nline 500001 x+\\n\[2 lines shown; continue with offset 500002\]/,
  );
  expect(whole).toMatchObject({ status: 'failed' });
});

test('an answer of the editor that is too long fails the call immediately', async () => {
  const own = home([edit('a.txt', 'a', 'b')], { 'a.txt': 'a' });
  const [end] = await ends(own, { read: () => 'y'.repeat(33 * 1024 * 1024) });
  expect(JSON.stringify(end!.content)).toContain('longer than 33554432 bytes');
});

test('an editor that does not know ranges is read all the same', async () => {
  const text = Array.from({ length: 40_000 }, (_, i) => `line ${i + 1} ${'x'.repeat(30)}`).join('\n');
  const own = home([{ call: 'read', input: { path: 'big.log', offset: 3, limit: 1 } }], { 'big.log': text });
  const [end] = await ends(own, { read: () => text });
  expect(JSON.stringify(end!.content)).toMatch(/"line 3 x/);
});

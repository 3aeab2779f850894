import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAgent, createAgentTool, formatStopReport, type Tool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { expect, onTestFinished, test } from 'vitest';
import { runHistories } from '../../../../../test/tools/file-histories.ts';
import { createFileTools } from '../file-tools.ts';
import { removeOldContents } from './file-keeper.ts';

function setUp(): { readonly at: (name: string) => string; readonly undoFolder: string; readonly root: string } {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-undo-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const root = join(folder, 'root');
  mkdirSync(root);
  return { root, at: (name) => join(root, name), undoFolder: join(folder, 'undo') };
}

/** Makes calls, then stops with an undo. Between the calls and the stop, `meanwhile` happens. */
async function stopAfter(
  calls: readonly { readonly call: string; readonly input: object }[],
  { root, undoFolder, ...options }: { readonly root: string; readonly undoFolder?: string; readonly workId?: string },
  meanwhile: () => void = () => {},
) {
  const model = createScriptedModel([...calls.map((call) => [call]), ['Next ', { waitMs: 60_000 }]]);
  const tools = createFileTools({ root, undoFolder });
  const run = createAgent({ name: 'a', model, tools, approve: () => true }).run('go', options);
  for await (const event of run.events) {
    if (event.type !== 'text') continue;
    meanwhile();
    run.cancel('not so', { undo: true, mode: 'now' });
  }
  const outcome = await run.outcome;
  if (outcome.status !== 'cancelled') throw new Error(outcome.status);
  return outcome.stop;
}

const write = (path: string, content: string) => ({ call: 'write', input: { path, content } });
const edit = (path: string, oldText: string, newText: string) => ({
  call: 'edit',
  input: { path, edits: [{ oldText, newText }] },
});

test('an undo restores the old content, last change first, and leaves no copies behind', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), 'one', { mode: 0o640 });
  const stop = await stopAfter([edit('a', 'one', 'two'), write('a', 'three'), write('new/b', 'b')], {
    root,
    undoFolder,
  });
  expect(stop.calls.map(({ undo }) => undo)).toEqual(['undone', 'undone', 'undone']);
  expect([readFileSync(at('a'), 'utf8'), existsSync(at('new/b'))]).toEqual(['one', false]);
  expect(statSync(at('a')).mode & 0o777).toBe(0o640);
  expect(readdirSync(undoFolder)).toEqual([]);
  expect(stop.isClean).toBe(true);
});

test('a file that no longer has the content that the call wrote is not touched, and the report shows it', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), 'one');
  const stop = await stopAfter([edit('a', 'one', 'two'), write('b', 'b')], { root, undoFolder }, () => {
    writeFileSync(at('a'), 'mine');
    rmSync(at('b'));
    writeFileSync(at('b'), 'mine too');
  });
  expect(stop.calls).toMatchObject([
    { undo: 'failed', undoError: expect.stringContaining('changed since') as unknown },
    { undo: 'failed', undoError: expect.stringContaining('changed since') as unknown },
  ]);
  expect([readFileSync(at('a'), 'utf8'), readFileSync(at('b'), 'utf8')]).toEqual(['mine', 'mine too']);
  expect(stop.isClean).toBe(false);
});

test('a file that was moved and linked is not touched, and the report gives that as the reason', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), 'one');
  const stop = await stopAfter([edit('a', 'one', 'two')], { root, undoFolder }, () => {
    renameSync(at('a'), at('moved'));
    symlinkSync('moved', at('a'));
  });
  expect(stop.calls).toMatchObject([
    { undo: 'failed', undoError: 'changed since: the file was moved, and its path is now a link' },
  ]);
  expect(readFileSync(at('moved'), 'utf8')).toBe('two');
});

test('without the old content, on another machine or of a large file, the undo is unavailable', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), 'one');
  writeFileSync(at('large'), 'x'.repeat(1_000_001));
  const stop = await stopAfter([write('large', 'small'), edit('a', 'one', 'two')], { root, undoFolder }, () =>
    rmSync(undoFolder, { recursive: true, force: true }),
  );
  expect(stop.calls.map(({ undo, undoError }) => `${undo} ${undoError}`)).toEqual(
    Array(2).fill(expect.stringContaining('failed undo unavailable')),
  );
  expect([readFileSync(at('a'), 'utf8'), readFileSync(at('large'), 'utf8')]).toEqual(['two', 'small']);
});

test('without a folder for old contents, the report names what stays', async () => {
  const { root } = setUp();
  const stop = await stopAfter([write('a', 'b')], { root });
  expect(stop.notUndone).toMatchObject([{ tool: 'write' }]);
  expect(formatStopReport(stop)).toMatch(/no undo {2}write \(.*\) finished and stays/);
});

test('results have digests, never the old content', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), `${'a secret that is not in the diff\n'.repeat(20)}last`);
  const [tool] = createFileTools({ root, undoFolder }).filter(({ name }) => name === 'edit');
  const model = createScriptedModel([[edit('a', 'last', 'end')], ['done']]);
  const outcome = await createAgent({ name: 'a', model, tools: [tool!], approve: () => true }).run('go').outcome;
  const [call] = outcome.calls;
  expect(call?.details).toMatchObject({ undo: { before: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown } });
});

/** How many bytes are kept. */
function measure(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

test('at most 16 MB are kept for a task, whatever tools and processes it uses: the oldest can no longer be undone', async () => {
  const { root, at, undoFolder } = setUp();
  const old = 'x'.repeat(990_000);
  const names = Array.from({ length: 20 }, (_, index) => `f${index}`);
  for (const name of [...names, 'of another task']) writeFileSync(at(name), old);
  const finish = async (workId: string, calls: readonly { readonly call: string; readonly input: object }[]) => {
    const model = createScriptedModel([...calls.map((call) => [call]), ['done']]);
    const tools = createFileTools({ root, undoFolder });
    await createAgent({ name: 'a', model, tools, approve: () => true }).run('go', { workId }).outcome;
  };
  await finish('other', [write('of another task', 'new')]);
  const other = measure(undoFolder);
  await finish(
    'task',
    names.slice(0, 10).map((name) => edit(name, old, `${name} new`)),
  );
  const stop = await stopAfter(
    names.slice(10).map((name) => write(name, 'new')),
    { root, undoFolder, workId: 'task' },
    () => {
      expect(measure(undoFolder) - other).toBeLessThanOrEqual(16_000_000);
      expect(measure(undoFolder) - other).toBeGreaterThan(15_000_000);
    },
  );
  expect(stop.calls.map(({ undo }) => undo)).toEqual(Array(10).fill('undone'));
  expect(measure(undoFolder) - other).toBeLessThanOrEqual(6_000_000);
});

test('calls of two tasks with the same id are kept apart, and so are those of a sub-agent', async () => {
  const { root, at, undoFolder } = setUp();
  writeFileSync(at('a'), 'one');
  const named = (content: string) => ({ ...write('a', content), id: 'call' });
  const tools = createFileTools({ root, undoFolder });
  const agentFor = (replies: Parameters<typeof createScriptedModel>[0], own: readonly Tool[]) =>
    createAgent({ name: 'a', model: createScriptedModel(replies), tools: own, approve: () => true });
  const first = agentFor([[named('two')], ['done']], tools).run('go', { workId: 'first' });
  await first.outcome;
  const child = createAgentTool(agentFor([[named('four')], ['done']], tools), { name: 'child', description: 'x' });
  const replies = [[named('three')], [{ call: 'child', input: { task: 'x' } }], ['done']];
  const second = agentFor(replies, [...tools, child as Tool]).run('go', { workId: 'second' });
  await second.outcome;
  expect(readdirSync(undoFolder)).toHaveLength(2);
  expect(await second.undo()).toMatchObject([{ state: 'undone' }, { state: 'undone' }]);
  expect(readFileSync(at('a'), 'utf8')).toBe('two');
  expect(await first.undo()).toMatchObject([{ state: 'undone' }]);
  expect(readFileSync(at('a'), 'utf8')).toBe('one');
  expect(readdirSync(undoFolder)).toEqual([]);
});

test('when a task has ended its old contents are removed, and no others; twice does no harm', async () => {
  const { root, at, undoFolder } = setUp();
  const runs = [];
  for (const workId of ['first', 'second']) {
    const model = createScriptedModel([[write(workId, 'new')], ['done']]);
    writeFileSync(at(workId), 'old');
    runs.push(
      createAgent({ name: 'a', model, tools: createFileTools({ root, undoFolder }), approve: () => true }).run('go', {
        workId,
      }),
    );
    await runs.at(-1)!.outcome;
  }
  await removeOldContents(undoFolder, 'first');
  await removeOldContents(undoFolder, 'first');
  expect(readdirSync(undoFolder)).toHaveLength(1);
  expect(await runs[0]!.undo()).toMatchObject([
    { state: 'failed', error: expect.stringContaining('not kept') as unknown },
  ]);
  expect(await runs[1]!.undo()).toMatchObject([{ state: 'undone' }]);
});

/** `HISTORIES=10000` for a long one. */
const histories = Number(process.env['HISTORIES'] ?? 300);

test('random histories of changes, foreign changes and crashes: a file is the old one or untouched, reports are true', async () => {
  const { root, undoFolder } = setUp();
  const report = await runHistories({ histories, seed: 9, root, undoFolder });
  expect(report.problems).toEqual([]);
  expect(report.histories).toBe(histories);
  expect(Math.min(report.undone, report.changedSince, report.unavailable, report.crashes)).toBeGreaterThan(
    histories / 20,
  );
}, 600_000);

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type CallResult, CancellationToken, createRuntime, isCancelledError, toText } from '@whoa/core';
import type { CancelOptions } from '@whoa/core/embed';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallEvent } from '../../../core/src/tool/events.ts';
import { createContainment } from '../process/containment/create-containment.ts';
import { type BashToolOptions, createBashTool } from './bash.ts';

const containment = createContainment();
const technique = await containment.ready();
let cwd = '';
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'bash-tool-'));
});
afterAll(async () => {
  await containment[Symbol.asyncDispose]();
  rmSync(cwd, { recursive: true });
});

interface Details {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly output: {
    readonly head: string;
    readonly tail: string;
    readonly bytes: number;
    readonly omittedBytes: number;
  };
  readonly cleanup: { readonly verified: string; readonly ended: number; readonly survivors: number };
  readonly logPath?: string;
}
const getDetails = (result: CallResult): Details => result.details as unknown as Details;

type Update = Extract<CallEvent, { type: 'call-update' }>;

interface BashOptions extends BashToolOptions {
  readonly input?: Record<string, unknown>;
  /** Cancel as soon as the output contains this. */
  readonly cancelAt?: string;
  readonly mode?: CancelOptions['mode'];
  readonly token?: CancellationToken;
  readonly onUpdate?: (event: Update) => void;
}

/** Runs one command as a model's call would run. */
async function runBash(command: string, options: BashOptions = {}): Promise<CallResult> {
  const { input, cancelAt, mode = 'now', token = new CancellationToken(), onUpdate: hear, ...rest } = options;
  const onUpdate = (event: Update): void => {
    hear?.(event);
    const isTime = cancelAt !== undefined && toText(event.partial.content).includes(cancelAt);
    if (isTime) token.cancel({ kind: 'user' }, { mode });
  };
  const tool = createBashTool({ containment, cwd, ...rest });
  const runtime = createRuntime({ tools: [tool], hooks: { 'call-update': onUpdate } });
  try {
    return (await runtime.execute([{ id: '1', tool: 'bash', input: { command, ...input } }], { token }))[0]!;
  } catch (error) {
    if (!isCancelledError(error)) throw error;
    return (error.partial as readonly CallResult[])[0]!;
  } finally {
    token[Symbol.dispose]();
  }
}

test('a command returns its output, and its details show how it ended', async () => {
  const result = await runBash('echo out; echo err >&2; printf "\\033[31mred\\033[0m"');
  expect(result).toMatchObject({ state: 'finished', isError: false, content: 'out\nerr\nred' });
  expect(getDetails(result)).toMatchObject({
    exitCode: 0,
    signal: null,
    output: { tail: 'out\nerr\n\u001b[31mred\u001b[0m', bytes: 20, omittedBytes: 0 },
    cleanup: { verified: technique, ended: 0, survivors: 0 },
  });
});

test.runIf(process.platform === 'linux')('the model and the user see which hosts a command can reach', async () => {
  const describe = async (network?: { allow: string[] }) => {
    await using own = createContainment({
      sandbox: { kind: 'workspace', workspace: cwd, ...(network && { network }) },
    });
    const tool = createBashTool({ containment: own, cwd });
    return { ...(await tool.preview!({ command: 'true' }, { signal: AbortSignal.abort() })), said: tool.description };
  };
  expect(await describe()).toMatchObject({
    sandbox: 'workspace',
    said: expect.stringContaining('and has no network.') as string,
  });
  expect(await describe({ allow: ['a.example', '*.b.example'] })).toMatchObject({
    sandbox: 'workspace, reaching a.example, *.b.example',
    said: expect.stringContaining('and can reach only a.example, *.b.example.') as string,
  });
});

test('an exit code that is not zero is an error, with the end of the output', async () => {
  expect(await runBash('echo broken; exit 3')).toMatchObject({ isError: true, content: 'Exit code 3\nbroken' });
  expect(await runBash('kill -9 $$')).toMatchObject({ isError: true, content: 'Ended by SIGKILL\n(no output)' });
});

test('standard output and error stay in the order written, and /dev/stderr can be opened', async () => {
  const lines = 'for i in 1 2 3 4 5; do echo out $i; echo err $i > /dev/stderr; done';
  const expected = [1, 2, 3, 4, 5].flatMap((i) => [`out ${i}`, `err ${i}`]).join('\n');
  expect(await runBash(lines)).toMatchObject({ content: expected });
});

test('standard input is empty: a command that reads it gets the end immediately', async () => {
  expect(await runBash('cat; echo done')).toMatchObject({ content: 'done' });
});

test('secrets of the host do not reach the command, and no tag of ours confuses it', async () => {
  process.env['SECRET_OF_THE_TEST'] = 'hush';
  expect(toText((await runBash('env')).content)).not.toContain('hush');
  expect(toText((await runBash('env', { env: { allow: ['SECRET_*'] } })).content)).toContain('hush');
  delete process.env['SECRET_OF_THE_TEST'];
});

test('cancelled before the start, nothing is started', async () => {
  const token = new CancellationToken();
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(await runBash('touch started', { token })).toMatchObject({ state: 'not-started' });
  expect(existsSync(join(cwd, 'started'))).toBe(false);
});

test('cancelled in the same tick as the call, it ends as fast as any', async () => {
  const token = new CancellationToken();
  const running = runBash('sleep 303', { token });
  token.cancel({ kind: 'user' }, { mode: 'now' });
  expect(['not-started', 'interrupted']).toContain((await running).state);
});

test('a cancelled command keeps its output so far', async () => {
  const result = await runBash('echo ä first; echo second; sleep 303; echo never', { cancelAt: 'second' });
  expect(result.state).toBe('interrupted');
  expect(toText(result.content)).toContain('ä first\nsecond');
  expect(toText(result.content)).not.toContain('never');
  expect(getDetails(result)).toMatchObject({ signal: 'SIGTERM', cleanup: { verified: technique, survivors: 0 } });
  expect(getDetails(result).cleanup.ended).toBeGreaterThan(0);
});

test('killed immediately, the call still ends interrupted and not unknown', async () => {
  const result = await runBash("trap '' TERM; echo up; while :; do sleep 303; done", { cancelAt: 'up', mode: 'kill' });
  expect(result.state).toBe('interrupted');
  expect(getDetails(result)).toMatchObject({ signal: 'SIGKILL', cleanup: { verified: technique, survivors: 0 } });
});

test('a cancel after the end changes nothing, and neither does a second one', async () => {
  const token = new CancellationToken();
  const result = await runBash('echo done', { token });
  expect(token.cancel({ kind: 'user' }).result).toBe('too-late');
  expect(result.state).toBe('finished');
  const second = new CancellationToken();
  const twice = await runBash('echo up; sleep 303', {
    cancelAt: 'up',
    onUpdate: () => second.cancel({ kind: 'user' }, { mode: 'now' }),
    token: second,
  });
  expect(twice.state).toBe('interrupted');
});

test('a command that takes too long is ended, and the model sees it', async () => {
  const result = await runBash('echo begun; setsid sleep 303 & sleep 303', { input: { timeoutSeconds: 0.3 } });
  expect(result).toMatchObject({ state: 'finished', isError: true });
  expect(toText(result.content)).toMatch(/^Stopped: it took longer than 0.3 s. Output so far:\nbegun/);
  expect(getDetails(result).cleanup).toMatchObject({ survivors: 0 });
});

test('a time-out longer than allowed is rejected with the bounds', async () => {
  const result = await runBash('true', { input: { timeoutSeconds: 601 } });
  expect(toText(result.content)).toContain('timeoutSeconds: expected 0.001 to 600');
});

test('output is shown while the command runs', async () => {
  const seen: string[] = [];
  const onUpdate = (event: Update): void => {
    seen.push(toText(event.partial.content));
  };
  await runBash('for i in 1 2 3; do echo $i; sleep 0.15; done', { onUpdate });
  expect(seen.length).toBeGreaterThanOrEqual(2);
  expect(seen[0]).toMatch(/^1/);
});

test('a grandchild that holds the output open does not delay the return, and is ended', async () => {
  const result = await runBash('sleep 303 & echo started; exit 0');
  expect(result).toMatchObject({ state: 'finished', isError: false });
  expect(toText(result.content)).toBe('started\n[ended, because the command had returned: 1 of its processes]');
  expect(result.endedAt - result.startedAt!).toBeLessThan(2_000);
});

test('output of a process substitution after the exit of its shell is not lost', async () => {
  const result = await runBash('echo a > >(sleep 0.05; tr a b)');
  expect(result.isError).toBe(false);
  expect(toText(result.content)).toMatch(/^b/);
});

test('an escaped child that keeps printing cannot delay a cancel, and its output is no longer read', async () => {
  const script = "timeout 300 sh -c 'while :; do echo tick; sleep 0.01; done'; echo never";
  const result = await runBash(script, { cancelAt: 'tick' });
  expect(result.state).toBe('interrupted');
  expect(getDetails(result).cleanup).toMatchObject({ survivors: 0, verified: technique });
});

test('git removes its index.lock when a commit with an open editor is cancelled', async () => {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: repository, encoding: 'utf8' });
  const repository = join(cwd, 'repository');
  execFileSync('git', ['init', '--quiet', repository]);
  git('config', 'user.email', 'test@example.org');
  git('config', 'user.name', 'Test');
  writeFileSync(join(repository, 'file'), 'one');
  git('add', '.');
  git('commit', '--quiet', '-m', 'one');
  writeFileSync(join(repository, 'file'), 'two');
  const editor = join(cwd, 'editor');
  writeFileSync(editor, '#!/bin/sh\necho editing\nsleep 303\n', { mode: 0o755 });
  const result = await runBash(`GIT_EDITOR=${editor} git commit -a`, { cwd: repository, cancelAt: 'editing' });
  expect(result.state).toBe('interrupted');
  expect(existsSync(join(repository, '.git/index.lock'))).toBe(false);
  git('add', '.');
  expect(git('status', '--short')).toBe('M  file\n');
});

test("a trap on TERM and EXIT runs, so that a script's own lock is removed", async () => {
  const script = "touch lock; trap 'rm -f lock; echo tidied' TERM EXIT; echo locked; sleep 303 & wait";
  const result = await runBash(script, { cancelAt: 'locked' });
  expect(toText(result.content)).toContain('tidied');
  expect(existsSync(join(cwd, 'lock'))).toBe(false);
});

test('a full log is kept only when requested and needed, for this user only, and is removed with its owner', async () => {
  await using own = createContainment();
  const short = await runBash('echo short', { containment: own, keepLog: true });
  expect(getDetails(short).logPath).toBeUndefined();
  expect(readdirSync(own.folder()).filter((name) => name.endsWith('.log'))).toEqual([]);
  const long = await runBash('seq 100000', { containment: own, keepLog: true });
  const logPath = getDetails(long).logPath!;
  expect(statSync(logPath).mode & 0o777).toBe(0o600);
  expect(readFileSync(logPath, 'utf8').trimEnd().split('\n')).toHaveLength(100_000);
  expect(toText(long.content)).toContain(logPath);
  const kept = await runBash('seq 100000', { containment: own, keepLog: { folder: cwd } });
  await own[Symbol.asyncDispose]();
  expect(existsSync(logPath)).toBe(false);
  expect(getDetails(kept).logPath!.startsWith(cwd)).toBe(true);
  expect(existsSync(getDetails(kept).logPath!)).toBe(true);
});

test('the end of a command’s output is never lost, no matter how long it is', async () => {
  const result = await runBash('seq 200000; echo the end');
  expect(toText(result.content).endsWith('the end')).toBe(true);
  expect(toText(result.content).startsWith('1\n2\n')).toBe(true);
  expect(getDetails(result).output.omittedBytes).toBeGreaterThan(1_000_000);
});

test('a gigabyte of output keeps memory flat', async () => {
  await runBash('yes | head -c 50000000');
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  let peak = before;
  const sampler = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 10);
  const result = await runBash('yes | head -c 1000000000');
  clearInterval(sampler);
  expect(getDetails(result).output.bytes).toBe(1_000_000_000);
  console.log(`1 GB: memory grew by ${((peak - before) / 2 ** 20).toFixed(1)} MB`);
  expect(peak - before).toBeLessThan(64 * 2 ** 20);
});

test('endless output is cancelled like any other', async () => {
  const result = await runBash('yes', { cancelAt: 'y' });
  expect(result.state).toBe('interrupted');
  expect(getDetails(result).cleanup.survivors).toBe(0);
});

test('no listener is left on a token that outlives many commands', async () => {
  const token = new CancellationToken();
  const runtime = createRuntime({ tools: [createBashTool({ containment })] });
  for (let i = 0; i < 20; i++)
    await runtime.execute([{ id: `${i}`, tool: 'bash', input: { command: 'true' } }], { token });
  expect(token.statistics).toEqual({ children: 0, listeners: 0 });
});

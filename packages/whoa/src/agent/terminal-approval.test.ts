import { PassThrough } from 'node:stream';
import { type ApprovalRequest, type Approve, defineTool } from '@whoa/core';
import { letEverythingReact } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { Screen } from '../terminal/screen.ts';
import { createTerminalApproval } from './terminal-approval.ts';

function setUp({ yes = false, isTTY = true } = {}) {
  const input = Object.assign(new PassThrough(), { isTTY });
  const output = new PassThrough();
  const seen: string[] = [];
  output.on('data', (chunk: Buffer) => seen.push(chunk.toString()));
  const screen = new Screen({ stdout: output, stderr: output });
  return { input, seen, approve: createTerminalApproval({ screen, yes, input, output }) };
}

function ask(approve: Approve, command: string, signal = new AbortController().signal) {
  const tool = defineTool<unknown>({
    name: 'bash',
    description: 'x',
    input: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
    execute: () => '',
  });
  const request: ApprovalRequest = { call: { id: 'c', tool: 'bash', input: { command } }, tool, effects: 'execute' };
  return Promise.resolve(approve(request, { signal }));
}

test.each([
  ['y\n', true],
  ['YES\n', true],
  ['n\n', false],
  ['\n', false],
  ['use make instead\n', 'use make instead'],
])('%j is answered %j', async (line, answer) => {
  const { input, approve } = setUp();
  const asked = ask(approve, 'rm -r build');
  input.write(line);
  expect(await asked).toBe(answer);
});

test('always is remembered for the tool, also by questions that wait already', async () => {
  const { input, seen, approve } = setUp();
  const both = [ask(approve, 'one'), ask(approve, 'two')];
  await letEverythingReact();
  expect(seen.join('')).not.toContain('two');
  input.write('a\n');
  expect(await Promise.all(both)).toEqual([true, true]);
});

test('a cancel takes the question away, also one that has not been asked yet', async () => {
  const { input, approve } = setUp();
  const controller = new AbortController();
  const both = [ask(approve, 'one', controller.signal), ask(approve, 'two', controller.signal)];
  await letEverythingReact();
  controller.abort();
  expect(await Promise.all(both)).toEqual(Array(2).fill('cancelled before anybody answered'));
  const next = ask(approve, 'three');
  await letEverythingReact();
  input.write('y\n');
  expect(await next).toBe(true);
});

test('the end of the input is a no', async () => {
  const { input, approve } = setUp();
  const asked = ask(approve, 'one');
  input.end();
  expect(await asked).toBe(false);
});

test('a command cannot hide what it does from the person', async () => {
  const { input, seen, approve } = setUp();
  const asked = ask(approve, 'echo safe\x1b[2K\rrm -rf .\nsecond');
  input.write('n\n');
  await asked;
  expect(seen.join('')).toContain('    echo safe�[2K�rm -rf .\n    second\n');
});

test('without a terminal the answer says why not; with --yes nobody is asked', async () => {
  expect(await ask(setUp({ isTTY: false }).approve, 'one')).toMatch(/not a terminal.*--yes/);
  expect(await ask(setUp({ yes: true, isTTY: false }).approve, 'one')).toBe(true);
});

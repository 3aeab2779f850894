import { expect, onTestFinished, test } from 'vitest';
import { createWorkspace } from '../../../../test/workspace.ts';
import { openScript } from './script.ts';

function write(content: string): string {
  const workspace = createWorkspace({ 'script.json': content });
  onTestFinished(() => workspace[Symbol.dispose]());
  return workspace.at('script.json');
}

test('a script returns its replies in sequence', async () => {
  const model = await openScript(
    write('{ "wordMs": 0, "replies": [["One two", { "call": "bash", "input": { "x": 1 } }]] }'),
  );
  const parts = [];
  const request = { messages: [], tools: [] };
  for await (const part of model.stream(request, { signal: new AbortController().signal })) parts.push(part);
  expect(parts).toContainEqual({ type: 'text', text: 'two' });
  expect(parts).toContainEqual({ type: 'call-end', callId: 'call-1', tool: 'bash', input: { x: 1 } });
});

test.each([
  ['{', 'is not valid JSON'],
  ['[]', 'has no replies'],
  ['["x"]', 'has a reply that is not a list'],
  ['[[7]]', 'has an invalid step: 7'],
  ['{ "replies": [[]], "wordMs": "1" }', 'has a wordMs that is not a number'],
])('%s is rejected: %s', async (content, what) => {
  await expect(openScript(write(content))).rejects.toThrow(what);
});

test('a script that is not there is named', async () => {
  await expect(openScript('/nowhere/script.json')).rejects.toThrow(/cannot read the script.*\/nowhere\/script.json/);
});

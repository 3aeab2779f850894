import { methods } from '@agentclientprotocol/sdk/experimental/v2';
import { afterEach, expect, test } from 'vitest';
import { openEditorV2 } from '../../../../test/acp/editor.ts';
import { type InProcess, serveInProcess } from '../../../../test/acp/in-process.ts';
import type { AcpOptions } from '../options.ts';

const opened: InProcess[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map(({ connection }) => connection.close()));
});

async function open(more: Partial<AcpOptions> = {}) {
  const served = serveInProcess(more);
  opened.push(served);
  const editor = await openEditorV2(served.stream);
  const { agent, sessionId } = editor;
  const prompt = (text: string) =>
    agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
  const state = (name: string) => served.waitFor(({ params }) => params?.update?.['state'] === name);
  const call = (status: string) => served.waitFor(({ params }) => params?.update?.['status'] === status);
  return { ...served, ...editor, prompt, state, call };
}

test('a prompt is answered when it is in the history, and ends with an update', async () => {
  const { prompt, state, updates } = await open();
  expect(await prompt('hello')).toEqual({ messageId: 'm0' });
  expect((await state('idle')).params?.update).toMatchObject({ stopReason: 'end_turn' });
  // On a busy machine the words come in several pieces.
  const kinds = updates().map((update) => update['sessionUpdate']);
  expect(kinds.filter((kind, i) => kind !== kinds[i - 1])).toEqual([
    'user_message',
    'state_update',
    'session_info_update',
    'agent_message_chunk',
    'usage_update',
    'state_update',
  ]);
});

test('further folders are offered only if the agent uses them, and otherwise refused', async () => {
  const more = { cwd: '/tmp', additionalDirectories: ['/usr'], mcpServers: [] };
  const one = await open();
  expect(JSON.stringify(one.messages[0])).not.toContain('additionalDirectories');
  await expect(one.agent.request(methods.agent.session.new, more)).rejects.toMatchObject({ code: -32602 });
  const several = await open({ additionalDirectories: true });
  expect(JSON.stringify(several.messages[0])).toContain('additionalDirectories');
  await several.agent.request(methods.agent.session.new, more);
});

test('a cancel is confirmed by the idle state, after the call was reported as cancelled', async () => {
  const { agent, sessionId, prompt, state, call, updates } = await open();
  await prompt('deaf');
  await call('in_progress');
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect((await state('idle')).params?.update).toMatchObject({ stopReason: 'cancelled' });
  const names = updates().map((update) => update['status'] ?? update['state']);
  expect(names.indexOf('cancelled')).toBeLessThan(names.indexOf('idle'));
  expect(names.at(-1)).toBe('idle');
});

test('tool_call/cancel stops one call, and the turn continues to its end', async () => {
  const { agent, sessionId, prompt, state, call } = await open();
  await prompt('slow');
  const { toolCallId, capabilities } = (await call('in_progress')).params!.update!;
  expect(capabilities).toEqual({ cancel: {} });
  const params = { sessionId, toolCallId: toolCallId as string };
  expect(await agent.request(methods.agent.toolCall.cancel, params)).toEqual({});
  expect((await call('cancelled')).params?.update).toMatchObject({ capabilities: null });
  expect((await state('idle')).params?.update).toMatchObject({ stopReason: 'end_turn' });
  // It has ended: a second prompt is rejected, as is one for an unknown session.
  await expect(agent.request(methods.agent.toolCall.cancel, params)).rejects.toMatchObject({ code: -32602 });
});

test('a call that must finish does not offer to be cancelled, and refuses', async () => {
  const { agent, sessionId, prompt, state, call } = await open();
  await prompt('finish');
  const { toolCallId, capabilities } = (await call('in_progress')).params!.update!;
  expect(capabilities).toBeNull();
  const params = { sessionId, toolCallId: toolCallId as string };
  await expect(agent.request(methods.agent.toolCall.cancel, params)).rejects.toMatchObject({ code: -32602 });
  expect((await state('idle')).params?.update).toMatchObject({ stopReason: 'end_turn' });
});

test('a prompt that is cancelled while it waits is answered with -32800', async () => {
  const { agent, sessionId, prompt, state } = await open();
  await prompt('silent');
  const second = prompt('hello').catch((error: unknown) => error);
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await second).toMatchObject({ code: -32800 });
  await state('idle');
});

test('a permission request without an answer is released by the cancel', async () => {
  const { agent, sessionId, prompt, state, waitFor } = await open();
  await prompt('ask');
  const asked = await waitFor(({ method }) => method === 'session/request_permission');
  expect(asked.params).toMatchObject({ title: 'write: a.txt', subject: { type: 'tool_call' } });
  await state('requires_action');
  await agent.notify(methods.agent.session.cancel, { sessionId });
  await waitFor(({ method, params }) => method === '$/cancel_request' && params?.['requestId'] === asked.id);
  expect((await state('idle')).params?.update).toMatchObject({ stopReason: 'cancelled' });
});

test('a close sends the last updates and the idle state before it answers', async () => {
  const { agent, sessionId, prompt, messages, state } = await open();
  await prompt('talk');
  await agent.request(methods.agent.session.close, { sessionId });
  const idle = await state('idle');
  expect(idle.params?.update).toMatchObject({ stopReason: 'cancelled' });
  expect(messages.at(-1)?.result).toEqual({});
  await expect(prompt('hello')).rejects.toMatchObject({ code: -32002 });
});

test('a failure is reported in the idle state', async () => {
  const { prompt, state } = await open();
  await prompt('fail');
  expect((await state('idle')).params?.update).toMatchObject({
    stopReason: 'error',
    error: { message: 'the provider is down; try again later' },
  });
});

test('an edit is reported as a patch with its location', async () => {
  const { prompt, call } = await open();
  await prompt('edit');
  expect((await call('completed')).params?.update).toMatchObject({
    locations: [{ path: '/tmp/src/a.txt', line: 2 }],
    content: [{ type: 'diff', changes: [{ operation: 'modify', path: '/tmp/src/a.txt' }] }, { type: 'content' }],
  });
});

test('a session is resumed with its history when asked, and without it when not', async () => {
  const { agent, sessionId, prompt, state, updates } = await open();
  await prompt('hello');
  await state('idle');
  await agent.request(methods.agent.session.close, { sessionId });
  const before = updates().length;
  const request = { sessionId, cwd: '/tmp', mcpServers: [] };
  await agent.request(methods.agent.session.resume, request);
  expect(updates()).toHaveLength(before);
  await agent.request(methods.agent.session.resume, { ...request, replayFrom: { type: 'start' } });
  expect(updates().slice(before)).toMatchObject([
    { sessionUpdate: 'user_message', messageId: 'm0' },
    { sessionUpdate: 'agent_message_chunk', messageId: 'm1', content: { text: 'You said: hello' } },
  ]);
  expect((await agent.request(methods.agent.session.list, {})).sessions).toMatchObject([{ sessionId, title: 'hello' }]);
});

test('login and settings accept the offered values, and reject the rest', async () => {
  const { agent, sessionId } = await open();
  expect(await agent.request(methods.agent.auth.login, { methodId: 'environment' })).toEqual({});
  await expect(agent.request(methods.agent.auth.login, { methodId: 'none' })).rejects.toMatchObject({ code: -32602 });
  const set = { sessionId, configId: 'model', type: 'id' as const };
  const { configOptions } = await agent.request(methods.agent.session.setConfigOption, { ...set, value: 'b' });
  expect(configOptions).toMatchObject([{ configId: 'model', currentValue: 'b' }]);
  await expect(agent.request(methods.agent.session.setConfigOption, { ...set, value: 'c' })).rejects.toMatchObject({
    code: -32602,
  });
  expect(await agent.request(methods.agent.session.delete, { sessionId })).toEqual({});
});

import { once } from 'node:events';
import * as acp from '@agentclientprotocol/sdk';
import * as acp2 from '@agentclientprotocol/sdk/experimental/v2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AgentProcess, openEditor, openEditorV2, type RawMessage, startAgent } from '../../../test/acp/editor.ts';
import { findProcesses } from '../../../test/acp/process-tree.ts';

const WAYS = ['session/cancel', '$/cancel_request', 'session/close'] as const;

const SCENARIOS = {
  'with a process tree running': { prompt: 'tree', until: (m: RawMessage) => findStatus(m) === 'content' },
  'with a permission pending and a mute client': {
    prompt: 'ask',
    until: (m: RawMessage) => m.method === 'session/request_permission',
  },
  'in the middle of a text': { prompt: 'talk', until: (m: RawMessage) => JSON.stringify(m).includes('three') },
  'in the middle of asking for a call': { prompt: 'half', until: (m: RawMessage) => findStatus(m) === 'pending' },
  'before the first token': {
    prompt: 'silent',
    until: (m: RawMessage) => diffAgentVersion(m) === 'session_info_update',
  },
} as const;

// One process serves all tests of a version: what one leaves behind, the next one finds.
const tag = crypto.randomUUID();
let v1: AgentProcess;
let v2: AgentProcess;
let editor: Awaited<ReturnType<typeof openEditor>>;
let editorV2: Awaited<ReturnType<typeof openEditorV2>>;

beforeAll(async () => {
  [v1, v2] = [startAgent({ WHOA_TEST_TAG: tag }), startAgent({ WHOA_TEST_TAG: tag })];
  [editor, editorV2] = await Promise.all([openEditor(v1.stream), openEditorV2(v2.stream)]);
});
afterAll(async () => {
  await Promise.all([v1[Symbol.asyncDispose](), v2[Symbol.asyncDispose]()]);
});

/** Waits for a message of one session, or of none. */
function waitForMessage({ waitFor }: AgentProcess, sessionId: string, matches: (message: RawMessage) => boolean) {
  return waitFor((message) => message.params?.['sessionId'] === sessionId && matches(message));
}

describe.each(Object.entries(SCENARIOS))('%s', (_, { prompt, until }) => {
  test.each(WAYS)('%s ends the prompt as cancelled, with every call closed before and nothing after', async (way) => {
    const { agent } = editor;
    const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
    const before = v1.messages.length;
    const cancelling = new AbortController();
    const answer = agent.request(
      acp.methods.agent.session.prompt,
      { sessionId, prompt: [{ type: 'text', text: prompt }] },
      { cancellationSignal: cancelling.signal },
    );
    await waitForMessage(v1, sessionId, until);
    let closed: Promise<unknown> | undefined;
    if (way === 'session/cancel') await agent.notify(acp.methods.agent.session.cancel, { sessionId });
    if (way === '$/cancel_request') cancelling.abort();
    if (way === 'session/close') closed = agent.request(acp.methods.agent.session.close, { sessionId });
    expect(await answer).toMatchObject({ stopReason: 'cancelled' });
    expect(findProcesses(tag)).toEqual([]);
    await (closed ?? agent.request(acp.methods.agent.session.list, {}));
    expectCleanEnd(v1.messages.slice(before));
  });
});

describe('in version 2, with a process tree running', () => {
  async function openTree() {
    const { agent } = editorV2;
    const { sessionId } = await agent.request(acp2.methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
    const prompt = [{ type: 'text' as const, text: 'tree' }];
    await agent.request(acp2.methods.agent.session.prompt, { sessionId, prompt });
    const { params } = await waitForMessage(v2, sessionId, (message) => findStatus(message) === 'content');
    const idle = () => waitForMessage(v2, sessionId, (message) => message.params?.update?.['state'] === 'idle');
    return { agent, sessionId, idle, toolCallId: params?.update?.['toolCallId'] as string };
  }

  test('session/cancel is confirmed by the idle state, and nothing is left', async () => {
    const { agent, sessionId, idle } = await openTree();
    await agent.notify(acp2.methods.agent.session.cancel, { sessionId });
    expect((await idle()).params?.update).toMatchObject({ stopReason: 'cancelled' });
    expect(findProcesses(tag)).toEqual([]);
    expect(v2.messages.some((message) => findStatus(message) === 'cancelled')).toBe(true);
  });

  test('tool_call/cancel ends the tree alone, and the turn continues to its end', async () => {
    const { agent, sessionId, toolCallId, idle } = await openTree();
    await agent.request(acp2.methods.agent.toolCall.cancel, { sessionId, toolCallId });
    expect((await idle()).params?.update).toMatchObject({ stopReason: 'end_turn' });
    expect(findProcesses(tag)).toEqual([]);
  });
});

test('a tool’s console output does not reach the protocol', async () => {
  const { agent, sessionId } = editor;
  const prompt = [{ type: 'text' as const, text: 'print' }];
  // The reader of the messages throws on a line that is not one.
  expect(await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt })).toMatchObject({
    stopReason: 'end_turn',
  });
  while (!v1.stderr().includes('a tool that prints')) await once(v1.child.stderr, 'data');
});

/** Every call that was announced has ended before the answer, and no update follows it. */
function expectCleanEnd(messages: readonly RawMessage[]): void {
  const answered = messages.findIndex(({ result }) => result?.stopReason !== undefined);
  const open = new Set<unknown>();
  for (const message of messages.slice(0, answered)) {
    const { toolCallId, status } = (message.params?.update ?? {}) as { toolCallId?: string; status?: string };
    if (toolCallId === undefined) continue;
    if (status === 'completed' || status === 'failed') open.delete(toolCallId);
    else open.add(toolCallId);
  }
  expect([...open]).toEqual([]);
  expect(messages.slice(answered + 1).filter(({ method }) => method === 'session/update')).toEqual([]);
}

function diffAgentVersion(message: RawMessage): unknown {
  return message.params?.update?.['sessionUpdate'];
}

function findStatus(message: RawMessage): unknown {
  const update = message.params?.update;
  if (update?.['toolCallId'] === undefined) return undefined;
  return update['status'] ?? (update['content'] === undefined ? undefined : 'content');
}

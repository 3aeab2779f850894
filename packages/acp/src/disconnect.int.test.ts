import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { methods } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { type AgentProcess, openEditor, type RawMessage, startAgent } from '../../../test/acp/editor.ts';
import { findProcesses } from '../../../test/acp/process-tree.ts';
import { measureSlowness } from '../../../test/slowness.ts';

const partOfTree = (message: RawMessage): boolean => {
  const update = message.params?.update;
  return update?.['toolCallId'] !== undefined && update['status'] === undefined && update['content'] !== undefined;
};

/** An agent with a process tree running. */
async function withTree(env: Record<string, string> = {}) {
  const tag = crypto.randomUUID();
  const agentProcess = startAgent({ WHOA_TEST_TAG: tag, ...env });
  const { agent, sessionId } = await openEditor(agentProcess.stream);
  const answer = agent
    .request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: 'tree' }] })
    .catch((error: unknown) => error);
  await agentProcess.waitFor(partOfTree);
  expect(findProcesses(tag).length).toBeGreaterThanOrEqual(5);
  return { ...agentProcess, agentProcess, agent, sessionId, answer, tag };
}

/**
 * How long it takes until no process carries the tag. Polls, because there is no event for the exit of another process.
 */
async function msUntilGone(tag: string): Promise<number> {
  const start = performance.now();
  while (findProcesses(tag).length > 0 && performance.now() - start < 5_000) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return performance.now() - start;
}

function endGroup({ child }: AgentProcess, signal: 'SIGKILL' | 'SIGTERM'): void {
  process.kill(-child.pid!, signal);
}

test('when the editor closes its end, the agent stops everything and exits by itself', async () => {
  await using running = await withTree();
  running.child.stdin.end();
  await running.exited;
  expect(running.child.exitCode).toBe(0);
  expect(findProcesses(running.tag)).toEqual([]);
});

test('SIGTERM answers the prompt as cancelled, stops everything and ends the agent', async () => {
  await using running = await withTree();
  endGroup(running.agentProcess, 'SIGTERM');
  expect(await running.answer).toMatchObject({
    stopReason: 'cancelled',
    _meta: { 'whoa/stopReport': { reason: { kind: 'shutdown', via: 'SIGTERM' } } },
  });
  await running.exited;
  expect(running.child.exitCode).toBe(0);
  expect(findProcesses(running.tag)).toEqual([]);
});

test('SIGKILL to the group of the agent leaves no process, not even one in a separate session', async () => {
  await using running = await withTree();
  endGroup(running.agentProcess, 'SIGKILL');
  expect(await msUntilGone(running.tag)).toBeLessThan(1_000 * measureSlowness());
});

test('a session of an agent that was killed is loaded with its partial answer and its stopped call', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-acp-'));
  try {
    await using killed = await withTree({ WHOA_TEST_FOLDER: folder });
    const { sessionId, tag } = killed;
    // Output of a call that the client has seen is saved within flushIntervalMs; the file shows when.
    await waitForFile(join(folder, `${sessionId}.json`), 'I start it.');
    endGroup(killed.agentProcess, 'SIGKILL');
    await killed.exited;
    expect(await msUntilGone(tag)).toBeLessThan(1_000 * measureSlowness());

    await using second = startAgent({ WHOA_TEST_FOLDER: folder });
    const { agent } = await openEditor(second.stream);
    await agent.request(methods.agent.session.load, { sessionId, cwd: '/tmp', mcpServers: [] });
    const updates = second.messages.flatMap(({ params }) => params?.update ?? []);
    expect(updates).toMatchObject([
      { sessionUpdate: 'user_message_chunk', content: { text: 'tree' } },
      { sessionUpdate: 'agent_message_chunk', content: { text: 'I start it. ' } },
      { sessionUpdate: 'tool_call', title: 'bash: sleep 300' },
      { sessionUpdate: 'tool_call_update', status: 'failed', rawOutput: { cancelled: true, state: 'unknown' } },
    ]);
    const next = { sessionId, prompt: [{ type: 'text' as const, text: 'hello' }] };
    expect(await agent.request(methods.agent.session.prompt, next)).toMatchObject({ stopReason: 'end_turn' });
    const names = await readdir(folder);
    expect(names.filter((name) => name.endsWith('.json'))).toHaveLength(1);
    expect((await stat(join(folder, `${sessionId}.json`))).mode & 0o777).toBe(0o600);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('the echo agent repeats its input, and stops while it waits', async () => {
  await using slow = startAgent({ WHOA_TEST_ECHO: '30' });
  const { agent, sessionId } = await openEditor(slow.stream);
  const prompt = { sessionId, prompt: [{ type: 'text' as const, text: 'good morning' }] };
  const answer = agent.request(methods.agent.session.prompt, prompt);
  await slow.waitFor(({ params }) => params?.update?.['sessionUpdate'] === 'session_info_update');
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await answer).toMatchObject({ stopReason: 'cancelled' });

  await using fast = startAgent({ WHOA_TEST_ECHO: '0' });
  const editor = await openEditor(fast.stream);
  expect(
    await editor.agent.request(methods.agent.session.prompt, { ...prompt, sessionId: editor.sessionId }),
  ).toMatchObject({ stopReason: 'end_turn' });
  expect(JSON.stringify(fast.messages)).toContain('good morning');
});

async function waitForFile(path: string, text: string): Promise<void> {
  for (;;) {
    const content = await readFile(path, 'utf8').catch(() => '');
    if (content.includes(text) && content.includes('"unknown"')) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

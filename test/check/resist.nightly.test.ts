// Commands that resist their stop, over each protocol with a shell tool, and in an agent without defences behind the proxy.
import { type Adapter, createChatAdapter, createMcpAdapter } from '@whoa/check';
import { expect, test } from 'vitest';
import { check, findFailed, findProblems, TWO_INSTANCES, whoaMcp } from './our-servers.ts';
import { checkProxied } from './proxy.ts';

/** A service runs a job for whoever asks, and root may leave a cgroup. */
const LIMITS = ['resist-hand-over', 'resist-leave-cgroup'];

const AT = 'http://127.0.0.1:{port}';
const stopUrl = `${AT}/api/chat/{id}/stop`;
const OURS: Readonly<Record<string, () => Adapter>> = {
  chat: () => createChatAdapter({ ...TWO_INSTANCES, url: `${AT}/api/chat`, stopUrl }),
  mcp: () => createMcpAdapter({ command: whoaMcp() }),
};

test.each(Object.entries(OURS))('a command that resists is stopped over %s', async (_, create) => {
  const report = await check(create(), ['resist']);
  expect(findProblems(report).filter((problem) => !LIMITS.some((id) => problem.startsWith(id)))).toEqual([]);
});

test('the proxy stops commands that an agent behind it cannot', async () => {
  const report = await checkProxied('none', ['resist']);
  expect(findFailed(report).filter((id) => !LIMITS.includes(id))).toEqual([]);
});

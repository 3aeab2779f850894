import { methods } from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { openEditor, type RawMessage } from '../../../test/acp/editor.ts';
import { serveInProcess } from '../../../test/acp/in-process.ts';

const SESSIONS = 400;
const MAX_GROWTH_BYTES = 500_000;

test('sessions that were prompted, cancelled and deleted leave nothing in memory', async () => {
  const { stream, connection, messages } = serveInProcess();
  const { agent } = await openEditor(stream);
  const round = async (): Promise<number> => {
    for (let i = 0; i < SESSIONS; i++) {
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: '/tmp', mcpServers: [] });
      const prompt = [{ type: 'text' as const, text: i % 2 === 0 ? 'talk' : 'hello' }];
      const answer = agent.request(methods.agent.session.prompt, { sessionId, prompt });
      if (i % 2 === 0) await agent.notify(methods.agent.session.cancel, { sessionId });
      await answer;
      await agent.request(methods.agent.session.delete, { sessionId });
    }
    (messages as RawMessage[]).length = 0;
    global.gc!();
    return process.memoryUsage().heapUsed;
  };
  await round();
  const before = await round();
  await round();
  const after = await round();
  expect(after - before).toBeLessThan(MAX_GROWTH_BYTES);
  await connection.close();
});

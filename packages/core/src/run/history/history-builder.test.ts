import { expect, test } from 'vitest';
import { z } from 'zod';
import { createScriptedModel } from '../../testing/scripted-model.ts';
import { defineTool } from '../../tool/tool.ts';
import { createAgent } from '../agent.ts';
import { HistoryBuilder } from './history-builder.ts';
import type { Message } from './message.ts';
import { prepareMessages } from './prepare.ts';

const tool = defineTool({
  name: 'tool',
  description: '',
  effects: 'read',
  inputSchema: z.object({}).loose(),
  execute: () => 'done',
});

test('the events of a run build its history, even when it was compacted halfway', async () => {
  const summary: Message = { role: 'user', content: 'In short: go.' };
  const replies = [['one ', { call: 'tool' }, { call: 'tool' }], ['two ', { call: 'tool' }], ['three']] as const;
  for (const compact of [undefined, (messages: readonly Message[]) => (messages.length > 3 ? [summary] : messages)]) {
    const model = createScriptedModel(replies);
    const builder = new HistoryBuilder();
    const agent = createAgent({ name: 'a', model, tools: [tool], ...(compact && { compact }) });
    const outcome = await agent.run('go', { hooks: { any: (event) => builder.apply(event as never) } }).outcome;
    expect(outcome.status).toBe('success');
    expect(prepareMessages(builder.messages)).toEqual(prepareMessages(outcome.messages));
    expect(builder.results).toHaveLength(outcome.calls.length);
    expect([...builder.openCalls]).toEqual([]);
    if (compact !== undefined) expect(builder.messages).toContainEqual(summary);
  }
});

test('a result counts once and only for an open call, and words that were cut off are gone with the next turn', () => {
  const builder = new HistoryBuilder();
  const result = { callId: 'c', tool: 't', state: 'finished', content: 'x', isError: false, endedAt: 0 } as const;
  builder.addResult(result);
  expect(builder.messages).toEqual([]);
  const call = { type: 'call', callId: 'c', tool: 't', input: {} } as const;
  builder.addReply({ role: 'assistant', content: [call], stopReason: 'tool-use' });
  builder.startCall('other');
  builder.startCall('c');
  expect([...builder.openCalls]).toMatchObject([{ callId: 'c', isStarted: true }]);
  builder.addResult(result);
  builder.addResult(result);
  expect(builder.messages).toHaveLength(2);
  const at = { runId: 'r', at: 0, turn: 1 };
  builder.apply({ ...at, type: 'text', text: 'He' } as never);
  builder.apply({ ...at, type: 'text', text: 'llo' } as never);
  expect(builder.partial).toEqual([{ type: 'text', text: 'Hello' }]);
  builder.apply({ ...at, type: 'turn-start' } as never);
  expect(builder.partial).toEqual([]);
  builder.addReply({ role: 'assistant', content: [], stopReason: 'aborted' });
  expect(builder.messages).toHaveLength(2);
});

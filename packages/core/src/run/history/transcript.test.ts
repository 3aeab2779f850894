import { expect, test, vi } from 'vitest';
import type { CallResult } from '../../tool/result.ts';
import type { AssistantPart } from './message.ts';
import { Transcript } from './transcript.ts';

const result = (callId: string): CallResult => ({
  callId,
  tool: 't',
  state: 'finished',
  content: 'done',
  isError: false,
  endedAt: 0,
});
const asks = (callId: string): AssistantPart => ({ type: 'call', callId, tool: 't', input: {} });

test('every call has one result: the first that comes, or the one it is closed with', () => {
  const transcript = new Transcript();
  transcript.begin([{ role: 'user', content: 'before' }], { role: 'user', content: 'go' });
  transcript.addReply({ role: 'assistant', content: [asks('a'), asks('b')], stopReason: 'tool-use' });
  transcript.addResult(result('a'));
  transcript.addResult({ ...result('a'), content: 'again' });
  transcript.addResult(result('stranger'));
  const closed: unknown[] = [];
  transcript.close((call) => {
    closed.push(call);
    return { ...result(call.id), state: 'not-started' };
  });
  transcript.close(() => expect.unreachable('nothing is open'));
  expect(closed).toEqual([{ id: 'b', tool: 't' }]);
  expect(transcript.calls.map(({ callId, state }) => `${callId} ${state}`)).toEqual(['a finished', 'b not-started']);
  expect(transcript.messages.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'tool', 'tool']);
  expect(transcript.messages.at(-1)).toMatchObject({ role: 'tool', callId: 'b' });
});

test('the text joins all replies; a reply without parts is not a message, and its usage is counted', () => {
  const onUsage = vi.fn();
  const transcript = new Transcript(onUsage);
  expect([transcript.text, transcript.usage]).toEqual(['', { inputTokens: 0, outputTokens: 0, isComplete: true }]);
  const usage = { inputTokens: 1, outputTokens: 2, isComplete: true };
  transcript.addReply({ role: 'assistant', content: [{ type: 'text', text: 'one' }], stopReason: 'stop', usage });
  expect(transcript.text).toBe('one');
  const cut = {
    role: 'assistant',
    content: [],
    stopReason: 'aborted',
    usage: { ...usage, isComplete: false },
  } as const;
  expect(transcript.addReply(cut)).toEqual(cut);
  transcript.addReply({ role: 'assistant', content: [], stopReason: 'aborted' });
  expect(transcript.text).toBe('one');
  expect(transcript.messages).toHaveLength(1);
  expect(transcript.usage).toEqual({ inputTokens: 2, outputTokens: 4, isComplete: false });
  expect(onUsage.mock.calls).toEqual([[usage], [cut.usage]]);
});

test('an invalid history is rejected by name', () => {
  const transcript = new Transcript();
  expect(() => transcript.replace('x' as never)).toThrow('history: expected a list of messages');
  expect(() => transcript.replace([{ role: 'user', content: '' }, 7 as never])).toThrow(
    'history[1]: expected a message',
  );
});

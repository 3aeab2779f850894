import { expect, test } from 'vitest';
import { createCheckHarness } from './check-harness.ts';
import { promptFor } from './script.ts';

test('a request that the provider refused is one of its prompt', async () => {
  await using harness = await createCheckHarness();
  const key = harness.makeKey();
  const messages = [
    { role: 'user', content: promptFor('reply', key) },
    { role: 'tool', tool_call_id: 'call-1', content: 'the result of no call' },
  ];
  const ask = (history: readonly object[]): Promise<Response> =>
    fetch(`${harness.provider}/chat/completions`, { method: 'POST', body: JSON.stringify({ messages: history }) });
  expect((await ask(messages)).status).toBe(400);
  expect(harness.requestsFor(key)).toMatchObject([{ refusal: { rule: 'chat-result-of-call' } }]);
  // A check waits for one that the model answers.
  const accepted = harness.waitForRequest(key);
  expect((await ask(messages.slice(0, 1))).status).toBe(200);
  expect(await accepted).toBe(harness.requestsFor(key)[1]);
});

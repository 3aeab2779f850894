// Stops an agent while a tool that ignores its signal is running: with plain `streamText`, then with a stoppable turn.
//   node examples/keep-streamtext.ts
import { setTimeout as sleep } from 'node:timers/promises';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createCallRecords, createStoppableTurn } from '@whoa/ai-sdk';
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { CancellationToken } from '@whoa/core';
import { convertToModelMessages, isStepCount, streamText, tool, toUIMessageStream, type UIMessage } from 'ai';
import { z } from 'zod';

// A scripted provider on this machine. Like the real ones, it rejects invalid histories.
const id = 'toolu_01XUhnqiDmCzDGBKZ4tPm3Rk';
const script = [
  { parts: [{ text: 'Sending it now.' }, { call: 'send_mail', id, input: { to: 'Ada' } }] },
  { parts: [{ text: 'I was stopped, but the mail to Ada still went out.' }] },
];

/** A tool that ignores its signal. */
function deafMail() {
  const started = Promise.withResolvers<void>();
  const sent = Promise.withResolvers<void>();
  const send_mail = tool({
    description: 'Sends a mail.',
    inputSchema: z.object({ to: z.string() }),
    async execute({ to }) {
      started.resolve();
      await sleep(600);
      console.log(`  ✉ mail sent to ${to}`);
      sent.resolve();
      return `Sent to ${to}`;
    },
  });
  return { tools: { send_mail }, started: started.promise, sent: sent.promise };
}

function say(text: string): UIMessage {
  console.log(`  user: ${text}`);
  return { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] };
}

/** Prints a stream and returns the resulting history. */
async function show(stream: Parameters<typeof toUIMessageStream>[0]['stream'], originalMessages: UIMessage[]) {
  let history = originalMessages;
  const ui = toUIMessageStream({ stream, originalMessages, onEnd: ({ messages }) => void (history = messages) });
  for await (const part of ui) if (part.type === 'text-delta') console.log(`  assistant: ${part.delta}`);
  return history;
}

async function plain(): Promise<void> {
  await using provider = await startLoopbackProvider({ script });
  const model = createAnthropic({ baseURL: provider.url, apiKey: 'none' })('claude-sonnet-4-5');
  const { tools, started, sent } = deafMail();
  const turn = async (history: UIMessage[], abortSignal: AbortSignal) => {
    const messages = await convertToModelMessages(history);
    const onError = ({ error }: { error: unknown }) => console.log(`  ✗ ${(error as Error).message}`);
    return streamText({ model, messages, tools, abortSignal, stopWhen: isStepCount(5), onError });
  };

  const stop = new AbortController();
  const history = [say('Send the report to Ada')];
  const showing = show((await turn(history, stop.signal)).stream, history);
  await started;
  console.log('  ■ Stop');
  stop.abort();
  const after = await showing;
  console.log('  stopped');
  await sent;
  await show((await turn([...after, say('Was it sent?')], new AbortController().signal)).stream, after);
}

async function guarded(): Promise<void> {
  await using provider = await startLoopbackProvider({ script });
  const model = createAnthropic({ baseURL: provider.url, apiKey: 'none' })('claude-sonnet-4-5');
  const { tools, started, sent } = deafMail();
  const calls = createCallRecords(); // one per conversation

  async function turn(history: UIMessage[], token: CancellationToken) {
    const turn = createStoppableTurn({ token, history: await convertToModelMessages(history), tools, calls });
    const after = await show(streamText({ model, ...turn }).stream, history);
    const { calls: ended } = await turn.settled;
    for (const { tool: name, state } of ended) console.log(`  stopped; ${name}: ${state}`);
    return after;
  }

  const token = new CancellationToken();
  const ending = turn([say('Send the report to Ada')], token);
  await started;
  console.log('  ■ Stop');
  token.cancel({ kind: 'user' }, { mode: { abortMs: 200 } });
  const after = await ending;
  await sent;
  await sleep(0);
  console.log(`  late result: ${calls.records()[0]?.late?.state}, recorded and fenced`);
  const next = new CancellationToken();
  const answering = turn([...after, say('Was it sent?')], next);
  const { body } = await provider.waitForRequest(1);
  console.log(`  the model sees: ${JSON.stringify(body).match(/"tool_result".*?(It was [^"]*)/)?.[1]}`);
  await answering;
  for (const one of [token, next]) one[Symbol.dispose]();
}

console.log('Plain streamText');
await plain();
console.log('A stoppable turn');
await guarded();

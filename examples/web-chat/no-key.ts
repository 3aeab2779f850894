// Stands in for OpenAI, so that the chat in app needs no key: it answers every message with a story, slowly.
import { startLoopbackProvider } from '@whoa/ai-sdk/testing';

const story = 'Once upon a time there was an agent that stopped when you told it to. '.repeat(8).match(/\S+ /g)!;
const provider = await startLoopbackProvider({
  port: Number(process.env['PORT'] ?? 0),
  script: () => ({ parts: [{ text: story }], pace: { intervalMs: 60 } }),
});
console.log(provider.url);

// The model the examples talk to: a real provider when a key is set, else one on this machine that follows a script.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { fromAiSdk } from '@whoa/ai-sdk';
import { type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import type { Model } from '@whoa/core/model';

export async function exampleModel(
  script: readonly ScriptedResponse[],
): Promise<{ model: Model; close: () => Promise<void> }> {
  const { ANTHROPIC_API_KEY, OPENAI_API_KEY } = process.env;
  const close = (): Promise<void> => Promise.resolve();
  if (ANTHROPIC_API_KEY) return { model: fromAiSdk(createAnthropic()('claude-sonnet-4-5')), close };
  if (OPENAI_API_KEY) return { model: fromAiSdk(createOpenAI()('gpt-5')), close };
  console.log('(no key set: talking to a scripted provider on this machine)\n');
  const provider = await startLoopbackProvider({ script });
  const local = createAnthropic({ baseURL: provider.url, apiKey: 'none' });
  return { model: fromAiSdk(local('scripted')), close: () => provider.close() };
}

// The three wire formats, spoken by the real provider packages to the loopback provider.
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { type AiSdkModel, fromAiSdk } from '@whoa/ai-sdk';
import type { WireFormat } from '@whoa/ai-sdk/testing';
import type { Model } from '@whoa/core/model';
import { createAnthropic as createAnthropicV3 } from 'ai-sdk-anthropic-v3';
import { createOpenAI as createOpenAiV3 } from 'ai-sdk-openai-v3';

export const formats: readonly WireFormat[] = ['chat', 'responses', 'anthropic'];

/** Every format, with the packages of both specifications. */
export const spoken: readonly [format: WireFormat, version: 'v3' | 'v4'][] = formats.flatMap((format) => [
  [format, 'v4'],
  [format, 'v3'],
]);

/** A provider package's model that talks to `url`. */
export function aiSdkModel(format: WireFormat, url: string, version: 'v3' | 'v4' = 'v4'): AiSdkModel {
  const settings = { baseURL: url, apiKey: 'none' };
  const openAi = version === 'v4' ? createOpenAI(settings) : createOpenAiV3(settings);
  switch (format) {
    case 'chat':
      return openAi.chat('gpt-4o');
    case 'responses':
      return openAi.responses('gpt-5');
    case 'anthropic':
      return (version === 'v4' ? createAnthropic(settings) : createAnthropicV3(settings))('claude-sonnet-4-5');
  }
}

/** The same as a Whoa model. */
export function loopbackModel(format: WireFormat, url: string, version: 'v3' | 'v4' = 'v4'): Model {
  return fromAiSdk(aiSdkModel(format, url, version));
}

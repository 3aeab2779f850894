import { resolve } from 'node:path';
import type { Model } from '@whoa/core/model';
import type { ConnectionContext } from '../system.ts';
import { parseModelName, readKey } from './model-name.ts';

/** Opens the model with this name. The provider package is loaded on demand. */
export async function openModel(name: string, { env, cwd }: ConnectionContext): Promise<Model> {
  const wanted = parseModelName(name);
  if (wanted.provider === 'scripted') {
    const { openScript } = await import('./script.ts');
    return openScript(resolve(cwd(), wanted.file));
  }
  const apiKey = readKey(wanted, env);
  const { fromAiSdk } = await import('@whoa/ai-sdk');
  switch (wanted.provider) {
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return fromAiSdk(createAnthropic({ apiKey: apiKey! })(wanted.model));
    }
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      return fromAiSdk(createOpenAI({ apiKey: apiKey! })(wanted.model));
    }
    case 'compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const { url: baseURL, model } = wanted;
      const provider = createOpenAICompatible({
        name: 'compatible',
        baseURL,
        ...(apiKey && { apiKey }),
        includeUsage: true,
      });
      return fromAiSdk(provider(model));
    }
  }
}

import { bin, type Subject } from '../subject.ts';

export const opencode: Subject = {
  name: 'opencode',
  title: 'OpenCode',
  protocol: 'acp',
  packages: { 'opencode-ai': '1.18.33' },
  scripts: ['opencode-ai'],
  about: 'Its shell tool asks before each command.',
  page: 'https://opencode.ai/docs/acp and https://opencode.ai/docs/providers',
  command: (location) => [bin(location, 'opencode'), 'acp'],
  env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1' }),
  files: ({ provider }) => ({ '.config/opencode/opencode.json': JSON.stringify(openAiCompatible(provider)) }),
};

/** The configuration of OpenCode and of agents built on it. */
export function openAiCompatible(provider: string): unknown {
  const model = { name: 'check', tool_call: true, limit: { context: 100_000, output: 8_000 } };
  return {
    model: 'check/check',
    small_model: 'check/check',
    permission: { bash: 'ask' },
    provider: {
      check: {
        npm: '@ai-sdk/openai-compatible',
        name: 'check',
        options: { baseURL: provider, apiKey: 'check' },
        models: { check: model },
      },
    },
  };
}

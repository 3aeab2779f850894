import { delimiter } from 'node:path';
import { bin, type Subject } from '../subject.ts';

export const pi: Subject = {
  name: 'pi',
  title: 'pi (ACP adapter)',
  protocol: 'acp',
  packages: { 'pi-acp': '0.0.34', '@earendil-works/pi-coding-agent': '0.87.1' },
  about: 'The newest version of pi whose parts are all on npm. pi never asks before it runs a command.',
  page: 'README of pi-acp; docs/models.md of pi',
  command: (location) => [bin(location, 'pi-acp')],
  env: ({ installed }) => ({
    PATH: `${installed}/node_modules/.bin${delimiter}${process.env['PATH'] ?? ''}`,
    PI_OFFLINE: '1',
  }),
  files: ({ provider }) => {
    const model = {
      id: 'check',
      name: 'check',
      reasoning: false,
      input: ['text'],
      contextWindow: 100_000,
      maxTokens: 8_000,
    };
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const check = { baseUrl: provider, api: 'openai-completions', apiKey: 'check', models: [{ ...model, cost }] };
    return {
      '.pi/agent/models.json': JSON.stringify({ providers: { check } }),
      '.pi/agent/settings.json': JSON.stringify({
        defaultProvider: 'check',
        defaultModel: 'check',
        quietStartup: true,
      }),
    };
  },
};

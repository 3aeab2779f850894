import { bin, type Subject } from '../subject.ts';

export const cline: Subject = {
  name: 'cline',
  title: 'Cline',
  protocol: 'acp',
  packages: { cline: '3.0.65' },
  scripts: ['cline'],
  about: 'Its tools ask before each call.',
  page: 'README of the package',
  command: (location) => [bin(location, 'cline'), '--acp'],
  env: () => ({
    CLINE_API_KEY: 'check',
    CLINE_PROVIDER: 'openai-compatible',
    CLINE_MODEL: 'check',
    CLINE_LOG_ENABLED: '0',
    CLINE_NO_AUTO_UPDATE: '1',
  }),
  files: ({ provider }) => {
    const settings = { provider: 'openai-compatible', apiKey: 'check', model: 'check', baseUrl: provider };
    const check = { settings, updatedAt: '2026-11-16T10:00:00.000Z', tokenSource: 'manual' };
    return {
      '.cline/data/settings/providers.json': JSON.stringify({
        version: 1,
        lastUsedProvider: 'openai-compatible',
        modes: {},
        providers: { 'openai-compatible': check },
      }),
    };
  },
};

import { bin, type Subject } from '../subject.ts';

export const copilot: Subject = {
  name: 'copilot',
  title: 'GitHub Copilot CLI',
  protocol: 'acp',
  packages: { '@github/copilot': '1.0.102' },
  about: 'With a custom provider and offline, so without an account. Its shell tool asks before each command.',
  page: 'copilot help providers',
  command: (location) => [bin(location, 'copilot'), '--acp'],
  env: ({ provider }) => ({
    COPILOT_PROVIDER_BASE_URL: provider,
    COPILOT_PROVIDER_TYPE: 'openai',
    COPILOT_PROVIDER_API_KEY: 'check',
    COPILOT_MODEL: 'check',
    COPILOT_OFFLINE: 'true',
    COPILOT_AUTO_UPDATE: 'false',
  }),
};

import { bin, type Subject } from '../subject.ts';

export const codex: Subject = {
  name: 'codex',
  title: 'Codex (ACP adapter)',
  protocol: 'acp',
  packages: { '@agentclientprotocol/codex-acp': '2.6.0', '@openai/codex': '0.166.0' },
  about: 'In the mode agent-full-access: its sandbox has no network, so the probe inside could not report.',
  fairly:
    'Codex keeps a command that outlives its turn as a background process on purpose, and reports that to the model in the next turn. `late-effect`, `left-root`, `left-child` and `left-unresponsive` are this one decision.',
  page: 'README of the package; config.md of Codex',
  command: (location) => [bin(location, 'codex-acp')],
  env: () => ({ INITIAL_AGENT_MODE: 'agent-full-access', NO_BROWSER: '1' }),
  files: ({ provider }) => ({
    '.codex/config.toml': [
      'model = "check"',
      'model_provider = "check"',
      'check_for_update_on_startup = false',
      '[model_providers.check]',
      'name = "check"',
      `base_url = "${provider}"`,
      'wire_api = "responses"',
      '',
    ].join('\n'),
  }),
};

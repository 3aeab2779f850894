import { bin, type Subject } from '../subject.ts';

export const claudeAgent: Subject = {
  name: 'claude-agent',
  title: 'Claude Agent (ACP adapter)',
  protocol: 'acp',
  packages: { '@agentclientprotocol/claude-agent-acp': '0.99.1' },
  about: 'The adapter with the Claude Agent SDK that it depends on. Its suggestions are off.',
  page: 'README of the package',
  command: (location) => [bin(location, 'claude-agent-acp')],
  env: () => ({
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION: 'false',
    CLAUDE_CODE_DISABLE_AUTO_MEMORY: '1',
    DISABLE_AUTOUPDATER: '1',
  }),
};

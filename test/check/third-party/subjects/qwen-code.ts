import { bin, type Subject } from '../subject.ts';

export const qwenCode: Subject = {
  name: 'qwen-code',
  title: 'Qwen Code',
  protocol: 'acp',
  packages: { '@qwen-code/qwen-code': '0.24.4' },
  about:
    'In the mode that asks before each command: in its usual mode the model itself decides which calls need approval. Its memory and its suggestions are off. All of these call the model in addition to the turn, which would disturb the checks.',
  page: 'README of the package; settings.json of its docs',
  command: (location) => [bin(location, 'qwen'), '--acp', '--approval-mode', 'default'],
  env: () => ({ OPENAI_MODEL: 'check' }),
  files: () => ({
    '.qwen/settings.json': JSON.stringify({
      security: { auth: { selectedType: 'openai' } },
      general: { enableAutoUpdate: false },
      ui: { enableFollowupSuggestions: false },
      memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
      telemetry: { enabled: false },
      privacy: { usageStatisticsEnabled: false },
    }),
  }),
};

import { bin, type Subject } from '../subject.ts';
import { openAiCompatible } from './opencode.ts';

export const kilo: Subject = {
  name: 'kilo',
  title: 'Kilo Code',
  protocol: 'acp',
  packages: { '@kilocode/cli': '7.7.7' },
  scripts: ['@kilocode/cli'],
  about:
    'The newest version whose program for Linux is on npm. Built on OpenCode. Its shell tool asks before each command.',
  page: 'README of the package',
  command: (location) => [bin(location, 'kilo'), 'acp'],
  files: ({ provider }) => ({ '.config/kilo/kilo.json': JSON.stringify(openAiCompatible(provider)) }),
};

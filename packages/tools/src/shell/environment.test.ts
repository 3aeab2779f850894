import { expect, test } from 'vitest';
import { createShellEnvironment } from './environment.ts';

const host = { PATH: '/bin', HOME: '/home/me', LC_TIME: 'C', OPENAI_API_KEY: 'secret', AWS_SECRET: 'secret', CI: '1' };

test('secrets of the host do not reach commands', () => {
  const environment = createShellEnvironment({}, host);
  expect(environment).toMatchObject({ PATH: '/bin', HOME: '/home/me', LC_TIME: 'C' });
  expect(Object.values(environment)).not.toContain('secret');
  expect(environment).not.toHaveProperty('CI');
});

test('more names are handed on when they are allowed, also by their beginning', () => {
  expect(createShellEnvironment({ allow: ['CI', 'AWS_*'] }, host)).toMatchObject({ CI: '1', AWS_SECRET: 'secret' });
});

test('commands run in a non-interactive environment by default', () => {
  expect(createShellEnvironment({}, host)).toMatchObject({ TERM: 'dumb', PAGER: 'cat', GIT_TERMINAL_PROMPT: '0' });
  expect(createShellEnvironment({ set: { TERM: 'xterm' } }, host)['TERM']).toBe('xterm');
});

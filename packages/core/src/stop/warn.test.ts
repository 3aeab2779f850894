import { expect, test, vi } from 'vitest';
import { warn } from './warn.ts';

test.each([undefined, {}])('where there is no process to warn, the console gets the warning: %o', (none) => {
  const log = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const warning = new Error('nobody waits for this');
  vi.stubGlobal('process', none);
  try {
    warn(warning);
  } finally {
    vi.unstubAllGlobals();
  }
  expect(log.mock.calls).toEqual([[warning]]);
  log.mockRestore();
});

import { expect, test } from 'vitest';
import { shellResult } from './result.ts';
import type { ShellResult } from './run-shell.ts';

const end: ShellResult = {
  exit: { code: 0, signal: null },
  stopped: undefined,
  output: { head: 'first\n', tail: 'last\n', bytes: 1_000, lines: 100, omittedBytes: 900 },
  logPath: '/tmp/x.log',
  logProblem: undefined,
  cleanup: { verified: 'tags', ended: 0, survivors: 0, survivorPids: [] },
  removed: [],
  durationMs: 5,
};
const about = { command: 'seq 100', timeoutMs: 1_000 };

test('a log is called whole only if it is', () => {
  expect(shellResult(end, about).content).toContain('[everything is in /tmp/x.log]');
  const cut = shellResult({ ...end, logProblem: 'ENOSPC: no space left on device, write' }, about);
  expect(cut.content).toContain('[the first part is in /tmp/x.log: ENOSPC: no space left on device, write]');
  expect(cut.details).toMatchObject({ logProblem: 'ENOSPC: no space left on device, write' });
});

// Commands that resist their stop, in our own agent for editors.
import { type CheckReport, createAcpAdapter } from '@whoa/check';
import { createContainment } from '@whoa/tools';
import { expect, test } from 'vitest';
import { BIN, createHome } from '../command/terminal.ts';
import { isNight } from '../night.ts';
import { check, findFailed, findProblems } from './our-servers.ts';

/** A service runs it for whoever asks: only a sandbox keeps a command from asking. */
const BEYOND = 'resist-hand-over';

async function checkOurs(options: readonly string[], only: readonly string[]): Promise<CheckReport> {
  using home = createHome();
  return await check(
    createAcpAdapter({ command: [...BIN, 'acp', '--sandbox', 'none', ...options], env: home.env }),
    only,
  );
}

test.runIf(isNight)('nothing that a command does keeps it from being stopped in a PID namespace', async () => {
  const { results } = await checkOurs(['--isolate'], ['resist']);
  expect(results).toHaveLength(9);
  expect(findProblems({ results } as CheckReport).filter((problem) => !problem.startsWith(BEYOND))).toEqual([]);
});

test('a command that sees its host can neither freeze it nor outlive it', async () => {
  const attacks = ['resist-freeze-host', 'resist-kill-host', 'resist-kill-helpers'];
  const { results } = await checkOurs([], attacks);
  // Each of them was possible.
  expect(results.map(({ id, status, detail }) => [id, status, detail])).toEqual(
    attacks.map((id) => [id, 'passed', '']),
  );
});

test('a cgroup that a command may leave is the limit of the default', async () => {
  await using containment = createContainment();
  const isLimit = (await containment.ready()) === 'cgroup' && process.getuid?.() === 0;
  const report = await checkOurs([], ['resist-new-session', 'resist-leave-cgroup']);
  expect(findFailed(report)).toEqual(isLimit ? ['resist-leave-cgroup'] : []);
});

import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { createHome, type Home } from './terminal.ts';

function home(): Home {
  const made = createHome({ 'script.json': '[["Fine."]]', 'a file.ts': '' });
  onTestFinished(() => made[Symbol.dispose]());
  return made;
}

const isInstalled = (shell: string): boolean => spawnSync(shell, ['--version']).status === 0;

test('bash completes commands, options, their values, files and tasks when Tab is pressed', async () => {
  const own = home();
  expect((await own.main(['run', '--model', 'scripted:script.json', 'hi'])).status).toBe(0);
  const terminal = own.openTerminal();
  terminal.type('whoa completions bash > whoa.bash && source whoa.bash && clear && echo ready\n');
  await terminal.waitFor(/^ready/);
  for (const [typed, completed] of [
    ['whoa appr', /\$ whoa approve$/],
    ['whoa run --sand', /\$ whoa run --sandbox$/],
    ['whoa run --sandbox read', /\$ whoa run --sandbox read-only$/],
    ['whoa cancel --mode gr', /\$ whoa cancel --mode graceful$/],
    ['whoa run --config a', /\$ whoa run --config a\\ file\.ts$/],
    ['whoa help doc', /\$ whoa help doctor$/],
    ['whoa completions z', /\$ whoa completions zsh$/],
    ['whoa watch t-', /\$ whoa watch t-[\w-]+$/],
  ] as const) {
    terminal.type(typed);
    terminal.press('Tab');
    await terminal.waitFor(completed);
    terminal.press('C-u');
    terminal.press('C-l');
    await terminal.waitFor(/^\$$/);
  }
});

test.skipIf(!isInstalled('zsh'))('the script for zsh is valid', async () => {
  const { stdout } = await home().main(['completions', 'zsh']);
  expect(spawnSync('zsh', ['-n'], { input: stdout, encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
});

test.skipIf(!isInstalled('fish'))('the script for fish completes', async () => {
  const { stdout } = await home().main(['completions', 'fish']);
  const { stdout: completed } = spawnSync('fish', ['-c', `${stdout}\ncomplete -C 'whoa appr'`], { encoding: 'utf8' });
  expect(completed).toContain('approve');
});

test('only valid ids are completed, because a shell would run anything else', async () => {
  const own = home();
  own.folder.write('whoa.bash', (await own.main(['completions', 'bash'])).stdout);
  const program = [
    `whoa() { echo 't-abc running'; echo '$(touch owned) x'; echo '\`touch owned\` x'; echo 't-$(touch owned)'; }`,
    `source ./whoa.bash; COMP_WORDS=(whoa watch ""); COMP_CWORD=2; _whoa; echo "\${COMPREPLY[@]}"`,
  ].join('\n');
  const { stdout } = spawnSync('bash', ['-c', program], { cwd: own.folder.path, encoding: 'utf8' });
  expect(stdout).toContain('t-abc');
  expect(own.folder.list()).not.toContain('owned');
});

import { statSync } from 'node:fs';
import { homedir } from 'node:os';
import { expect, test } from 'vitest';
import { createWorkspace } from '../../../../test/workspace.ts';
import { chooseSandbox } from './choose-sandbox.ts';

const request = { word: undefined, config: {}, yes: false, isTerminal: true, env: {} };

test('the default sandbox is the one that works, and in a home folder none, with the reason', async () => {
  const { options, shown, needsConsent } = await chooseSandbox({ ...request, cwd: homedir() });
  expect(options).toEqual({ kind: 'none' });
  expect(shown).toMatch(/^sandbox none: commands can access everything that you can \(no other works here: /);
  expect(needsConsent).toBe(false);
});

test('everything allowed without a sandbox needs a word: asked at a terminal, refused without one', async () => {
  expect(await chooseSandbox({ ...request, yes: true, cwd: homedir() })).toMatchObject({ needsConsent: true });
  const alone = { ...request, yes: true, isTerminal: false, cwd: homedir() };
  await expect(chooseSandbox(alone)).rejects.toMatchObject({
    name: 'UsageError',
    message: '--yes without a terminal needs a sandbox choice: add --sandbox workspace, read-only or none',
  });
  expect(await chooseSandbox({ ...alone, word: 'none' })).toMatchObject({
    options: { kind: 'none' },
    needsConsent: false,
  });
  expect(await chooseSandbox({ ...alone, config: { sandbox: 'none' } })).toMatchObject({ needsConsent: false });
});

test('the word on the command line counts more than the configuration', async () => {
  using workspace = createWorkspace();
  const config = { sandbox: 'read-only' as const };
  const chosen = await chooseSandbox({ ...request, word: 'none', config, cwd: workspace.path });
  expect(chosen.options.kind).toBe('none');
  expect(chosen.shown).toBe('sandbox none: commands can access everything that you can');
});

test('network requests of commands are logged next to the tasks, in a file that only this user can read', async () => {
  using workspace = createWorkspace();
  const env = { XDG_STATE_HOME: workspace.at('state') };
  const sandbox = { kind: 'workspace', network: { allow: ['example.com'] } } as const;
  const { options } = await chooseSandbox({ ...request, word: 'none', config: { sandbox }, cwd: workspace.path, env });
  options.network!.onRequest!({
    at: 1,
    host: 'example.org',
    port: 443,
    isAllowed: false,
    reason: 'it is not on the list',
  });
  const log = workspace.read('state/whoa/network.log');
  expect(JSON.parse(log)).toMatchObject({ host: 'example.org', isAllowed: false });
  expect(statSync(workspace.at('state/whoa/network.log')).mode & 0o777).toBe(0o600);
});

test('an unavailable sandbox is rejected', async () => {
  await expect(chooseSandbox({ ...request, word: 'workspace', cwd: homedir() })).rejects.toThrow(
    /^--sandbox workspace does not work here: sandbox\.workspace: .*; choose a folder below it$/,
  );
});

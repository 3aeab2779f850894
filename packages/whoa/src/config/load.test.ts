import { chmodSync, chownSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createWorkspace } from '../../../../test/workspace.ts';
import { configFolder } from './config-folder.ts';
import { findConfig, loadConfig } from './load.ts';

function home(files: Record<string, string>) {
  const workspace = createWorkspace(files);
  onTestFinished(() => workspace[Symbol.dispose]());
  return { workspace, env: { XDG_CONFIG_HOME: workspace.path } };
}

test("a configuration is found in the person's own folder", () => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': '' });
  expect(findConfig(env)).toBe(workspace.at('whoa/whoa.config.mjs'));
});

test('a relative configuration folder is ignored: it would be the workspace', () => {
  expect(configFolder({ XDG_CONFIG_HOME: '.' })).not.toMatch(/^\./);
});

test.each([
  ['whoa', 0o777],
  ['whoa/whoa.config.mjs', 0o666],
  ['.', 0o777],
])('a configuration is refused if all users can write to %s', (path, mode) => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': '' });
  chmodSync(workspace.at(path), mode);
  expect(() => findConfig(env)).toThrow(/all users can write to.*chmod o-w/);
});

test.runIf(process.getuid?.() === 0)('a configuration of another user is refused', () => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': '' });
  chownSync(workspace.at('whoa'), 12_345, 12_345);
  expect(() => findConfig(env)).toThrow(/belongs to another user/);
});

test('what is given must exist and export a configuration', async () => {
  const { workspace, env } = home({ 'empty.mjs': '', 'good.mjs': "export const config = { model: 'scripted:x' };" });
  await expect(loadConfig(workspace.at('none.mjs'), env)).rejects.toThrow(/none.mjs does not exist/);
  await expect(loadConfig(workspace.at('empty.mjs'), env)).rejects.toThrow(/export default defineConfig/);
  expect(await loadConfig(workspace.at('good.mjs'), env)).toEqual({ model: 'scripted:x' });
  expect(await loadConfig(undefined, env)).toEqual({});
});

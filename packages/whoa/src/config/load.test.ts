import { chmodSync, chownSync, symlinkSync } from 'node:fs';
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
])('a configuration is rejected if all users can write to %s', (path, mode) => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': '' });
  chmodSync(workspace.at(path), mode);
  expect(() => findConfig(env)).toThrow(/all users can write to.*chmod o-w/);
});

test.runIf(process.getuid?.() === 0)('a configuration of another user is rejected', () => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': '' });
  chownSync(workspace.at('whoa'), 12_345, 12_345);
  expect(() => findConfig(env)).toThrow(/belongs to another user/);
});

test('a given configuration file must exist and export a configuration', async () => {
  const { workspace, env } = home({ 'empty.mjs': '', 'good.mjs': "export const config = { model: 'scripted:x' };" });
  const surroundings = { env, cwd: () => workspace.path };
  await expect(loadConfig(workspace.at('none.mjs'), surroundings)).rejects.toThrow(/none.mjs does not exist/);
  await expect(loadConfig(workspace.at('empty.mjs'), surroundings)).rejects.toThrow(/export default defineConfig/);
  expect(await loadConfig('good.mjs', surroundings)).toEqual({ model: 'scripted:x' });
  expect(await loadConfig(undefined, surroundings)).toEqual({});
});

test('a configuration below this folder is not loaded, unless it is named or the folder has a home in it', async () => {
  const { workspace, env } = home({ 'whoa/whoa.config.mjs': 'export default {};', 'project/a': '' });
  const surroundings = { env: { ...env, HOME: '/nowhere' }, cwd: () => workspace.path };
  await expect(loadConfig(undefined, surroundings)).rejects.toThrow(/is below this folder, so it is not loaded/);
  symlinkSync('.', workspace.at('link'));
  const linked = { ...surroundings, cwd: () => workspace.at('link') };
  await expect(loadConfig(undefined, linked)).rejects.toThrow(/is below this folder/);
  expect(await loadConfig('whoa/whoa.config.mjs', surroundings)).toEqual({});
  expect(await loadConfig(undefined, { ...surroundings, cwd: () => workspace.at('project') })).toEqual({});
  const atHome = { ...surroundings, env: { ...env, HOME: workspace.at('project') } };
  expect(await loadConfig(undefined, atHome)).toEqual({});
});

test.each([
  ['@whoa/none', 'in the clone, npm run pack -- FOLDER @whoa/none'],
  ['no-such-package', 'npm install no-such-package'],
])('a configuration that imports %s reports what to install', async (name, installed) => {
  const { workspace, env } = home({ 'lacking.mjs': `import '${name}'; export default {};` });
  const loading = loadConfig('lacking.mjs', { env, cwd: () => workspace.path });
  await expect(loading).rejects.toThrow(`or next to the file: ${installed}`);
});

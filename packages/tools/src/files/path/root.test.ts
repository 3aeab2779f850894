import { mkdirSync, symlinkSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { expectNothingLeft } from '../../../../../test/tools/nothing-left.ts';
import { createWorkspace, type Workspace } from '../../../../../test/workspace.ts';
import { openToRead } from './resolved-path.ts';
import { createRoot, type Root } from './root.ts';

expectNothingLeft();

const SECRET = 'the secret outside';

/** What hostile paths are made of. */
const PIECES = [
  '..',
  '.',
  '',
  'sub',
  'deep',
  'links',
  'in-folder',
  'out-folder',
  'out-absolute',
  'out-chain',
  'up',
  'chain',
  'outside',
  'root',
  'root-but-not',
  'secret.txt',
  'plain.txt',
  'in-file',
  'out-file',
  '~',
  '%2e%2e',
  '..\\',
  '...',
  '\u2025',
  '．．',
  'proc',
  'self',
  'cwd',
  'a'.repeat(300),
  ' ',
  '\n',
  '..;',
  'in-absolute',
  'dangling',
  'fd',
];

/** A root with links of every kind, inside a folder with a secret. */
function setUp(): Workspace {
  const workspace = createWorkspace({
    'outside/secret.txt': SECRET,
    'root-but-not/secret.txt': SECRET,
    'root/plain.txt': 'plain',
    'root/sub/deep/file.txt': 'deep',
  });
  mkdirSync(workspace.at('root/links'));
  const links: Record<string, string> = {
    'links/out-file': '../../outside/secret.txt',
    'links/out-folder': '../../outside',
    'links/out-absolute': workspace.at('outside'),
    'links/out-prefix': workspace.at('root-but-not'),
    'links/in-file': '../plain.txt',
    'links/in-folder': '../sub',
    'links/in-absolute': workspace.at('root/sub'),
    'links/chain': 'in-folder/deep',
    'links/loop': 'loop',
    'links/out-chain': 'out-folder',
    'links/up': '../..',
    'links/dangling': '../nowhere',
    'links/out-dangling': '../../outside/new.txt',
  };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, workspace.at(`root/${name}`));
  return workspace;
}

async function contentAt(root: Root, path: string): Promise<string> {
  await using resolved = await root.locate(path);
  if (resolved.kind !== 'file') return resolved.kind;
  await using file = await openToRead(resolved);
  return await file.readFile('utf8');
}

const tryRead = (root: Root, path: string) => contentAt(root, path).catch((error: { code: string }) => error.code);

describe.each(['held', 'checked'] as const)('%s', (confinement) => {
  test('paths inside are found, by whatever way leads to them', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    const inside: Record<string, string> = {
      'plain.txt': 'plain',
      './sub/../plain.txt': 'plain',
      [workspace.at('root/plain.txt')]: 'plain',
      'sub//deep/./file.txt': 'deep',
      'links/in-file': 'plain',
      'links/in-folder/deep/file.txt': 'deep',
      'links/in-absolute/deep/file.txt': 'deep',
      'links/chain/file.txt': 'deep',
      '.': 'folder',
      sub: 'folder',
      'nothing.txt': 'missing',
      'links/dangling': 'missing',
    };
    for (const [path, expected] of Object.entries(inside))
      expect([path, await tryRead(root, path)]).toEqual([path, expected]);
    await using resolved = await root.locate('links/chain/file.txt');
    expect(resolved).toMatchObject({ displayPath: 'sub/deep/file.txt', name: 'file.txt' });
  });

  test('paths that lead outside are rejected, whether or not there is something', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    const paths = [
      '..',
      '../outside/secret.txt',
      '../root-but-not/secret.txt',
      'sub/../../outside/secret.txt',
      workspace.at('outside/secret.txt'),
      workspace.at('root-but-not/secret.txt'),
      `${workspace.at('root')}/../outside/secret.txt`,
      '/etc/passwd',
      '/proc/self/environ',
      '/no/such/thing',
      'links/out-file',
      'links/out-folder/secret.txt',
      'links/out-absolute/secret.txt',
      'links/out-prefix/secret.txt',
      'links/out-chain/secret.txt',
      'links/up/outside/secret.txt',
      'links/out-dangling',
    ];
    for (const path of paths) expect([path, await tryRead(root, path)]).toEqual([path, 'OUTSIDE_ROOT']);
  });

  test('paths that mean nothing are rejected with what to do', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    await expect(root.locate('')).rejects.toThrow('use . for the root itself');
    await expect(root.locate('a\0b')).rejects.toThrow('NUL');
    await expect(root.locate('links/loop')).rejects.toThrow('symbolic links');
    await expect(root.locate('plain.txt/x')).rejects.toThrow('not a folder');
    await expect(root.locate('no/where')).rejects.toThrow('does not exist');
  });

  test('10,000 hostile paths reach nothing outside', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    const piece = fc.constantFrom(...PIECES);
    const prefix = fc.constantFrom(
      '',
      '/',
      '//',
      './',
      '../',
      `${workspace.at('root')}/`,
      `${workspace.path}/`,
      'file://',
    );
    const hostile = fc.tuple(prefix, fc.array(piece, { maxLength: 9 })).map(([start, rest]) => start + rest.join('/'));
    const runs = confinement === 'held' ? 10_000 : 1_000;
    let escapes = 0;
    const outcomes = new Map<string, number>();
    for (const path of fc.sample(hostile, { numRuns: runs, seed: 7 })) {
      const content = await tryRead(root, path);
      outcomes.set(content, (outcomes.get(content) ?? 0) + 1);
      if (content === SECRET || !(await isInside(root, path))) escapes++;
    }
    expect(escapes).toBe(0);
    // Hostile indeed, and not merely nonsense.
    expect(outcomes.get('OUTSIDE_ROOT')).toBeGreaterThan(runs / 4);
    expect(outcomes.get('folder')).toBeGreaterThan(runs / 50);
  }, 120_000);

  test('missing folders are created on the way and taken away again', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    {
      await using resolved = await root.locate('new/er/file.txt', { create: true });
      expect(resolved).toMatchObject({ kind: 'missing', displayPath: 'new/er/file.txt' });
      expect(workspace.list()).toContain('root/new/er');
      await resolved.removeCreated();
    }
    expect(workspace.list()).not.toContain('root/new');
    await expect(root.locate('links/out-folder/new/file.txt', { create: true })).rejects.toThrow('outside');
    await expect(root.locate('made/../../x/file.txt', { create: true })).rejects.toThrow('outside');
    expect(workspace.list().filter((name) => /new|made/.test(name))).toEqual(
      ['root/links/out-dangling'].filter((name) => name.includes('new')),
    );
  });

  test('two ways to one file have the same key', async () => {
    using workspace = setUp();
    const root = createRoot(workspace.at('root'), { confinement });
    await using first = await root.locate('sub/deep/file.txt');
    await using second = await root.locate('links/chain/file.txt');
    expect(first.key).toBe(second.key);
  });
});

/** Whatever a path resolves to is shown by a path without any way up. */
async function isInside(root: Root, path: string): Promise<boolean> {
  try {
    await using resolved = await root.locate(path);
    return !resolved.displayPath.split('/').includes('..') && !resolved.displayPath.startsWith('/');
  } catch {
    return true;
  }
}

test('a root that is itself reached by a link is accepted', async () => {
  using workspace = createWorkspace({ 'real/a.txt': 'a' });
  await symlink('real', workspace.at('alias'));
  const root = createRoot(workspace.at('alias'));
  expect(await contentAt(root, 'a.txt')).toBe('a');
  expect(await contentAt(root, workspace.at('alias/a.txt'))).toBe('a');
  expect(await contentAt(root, workspace.at('real/a.txt'))).toBe('a');
});

test('a path that is too deep is rejected before descriptors are opened', async () => {
  using workspace = createWorkspace({ 'a/b': '' });
  const root = createRoot(workspace.path);
  await expect(root.locate('a/../'.repeat(300))).rejects.toThrow('deep');
});

test('an empty or missing root is rejected immediately, one that was removed when it is used', async () => {
  expect(() => createRoot('')).toThrow('root: expected the path of a folder');
  expect(() => createRoot('/no/such/folder')).toThrow(
    "root: there is no folder '/no/such/folder'; create it or name another",
  );
  const workspace = createWorkspace({});
  const root = createRoot(workspace.path);
  workspace[Symbol.dispose]();
  await expect(root.locate('a')).rejects.toThrow('create the folder or name another');
});

import type { Tool } from '@whoa/core';
import { expect, test } from 'vitest';
import { describeToolContract } from '../../../../test/tools/contract-table.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import { createWorkspace, type Workspace } from '../../../../test/workspace.ts';
import { listResources, type ToolContractOptions } from '../testing/index.ts';
import { createFileTools } from './file-tools.ts';

expectNothingLeft();

test('all tools share a root and declare their effects', () => {
  using workspace = createWorkspace();
  const said = createFileTools({ root: workspace.path }).map(
    ({ name, effects, replay }) => `${name} ${effects} ${replay}`,
  );
  expect(said).toEqual([
    'read read safe',
    'write write safe',
    'edit write never',
    'ls read safe',
    'find read safe',
    'grep read safe',
  ]);
});

interface Subject {
  readonly files: () => Readonly<Record<string, string>>;
  readonly input: unknown;
  readonly slow: unknown;
  readonly isBusy?: (workspace: Workspace) => boolean;
}

const isWriting = (workspace: Workspace) => workspace.list().some((name) => name.endsWith('.tmp'));
const isSearching = () => listResources().processes.length > 0;
const manyFiles = () => Object.fromEntries(Array.from({ length: 800 }, (_, i) => [`sub/f${i}`, '']));

const subjects: Record<string, Subject> = {
  read: {
    files: () => ({ 'a.txt': 'a', 'big.txt': `${'x'.repeat(79)}\n`.repeat(400_000) }),
    input: { path: 'a.txt' },
    slow: { path: 'big.txt', offset: 390_000 },
  },
  write: {
    files: () => ({}),
    input: { path: 'a.txt', content: 'a' },
    slow: { path: 'b/c.txt', content: 'A'.repeat(32_000_000) },
    isBusy: isWriting,
  },
  edit: {
    files: () => ({ 'a.txt': 'a', 'big.txt': `start${'A'.repeat(24_000_000)}` }),
    // The edit keeps its search text in place, so that it succeeds every time.
    input: { path: 'a.txt', edits: [{ oldText: 'a', newText: 'ba' }] },
    slow: { path: 'big.txt', edits: [{ oldText: 'start', newText: 'begin' }] },
    isBusy: isWriting,
  },
  ls: { files: manyFiles, input: {}, slow: { path: 'sub' } },
  find: { files: manyFiles, input: { glob: 'f1' }, slow: { glob: '*' }, isBusy: isSearching },
  grep: {
    files: () => ({ 'a.txt': 'needle\n', 'big/b.txt': 'lorem ipsum dolor sit amet '.repeat(1_500_000) }),
    input: { pattern: 'needle', glob: 'a.txt' },
    slow: { pattern: '(\\w+\\s){12}zq' },
    isBusy: isSearching,
  },
};

function createContract(name: string, { files, input, slow, isBusy }: Subject): ToolContractOptions {
  return {
    create() {
      const workspace = createWorkspace(files());
      const before = workspace.list();
      const tool = createFileTools({ root: workspace.path }).find((one) => one.name === name) as Tool;
      return {
        tool,
        input,
        slow: {
          input: slow,
          ...(isBusy && {
            async whenBusy() {
              while (!isBusy(workspace)) await new Promise((resolve) => setImmediate(resolve));
            },
          }),
        },
        leftovers: () => workspace.list().filter((path) => !before.includes(path) && path !== 'a.txt'),
        [Symbol.asyncDispose]: () => Promise.resolve(workspace[Symbol.dispose]()),
      };
    },
  };
}

describeToolContract(
  Object.fromEntries(Object.entries(subjects).map(([name, it]) => [name, createContract(name, it)])),
);

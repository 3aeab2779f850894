import { expect, test } from 'vitest';
import { createWorkspace } from '../../../../../test/workspace.ts';
import { createRoot } from '../path/root.ts';
import { openSearchScope, unreadInside } from './search-scope.ts';

test('a file that could not be read is named only if it is still inside the root', async () => {
  using workspace = createWorkspace({ 'outside/secret.txt': 'x', 'root/sub/closed.txt': 'x' });
  const root = createRoot(workspace.at('root'));
  await using scope = await openSearchScope(root, 'sub');
  const stderrTail = ['closed.txt: Permission denied', 'secret.txt: No such file or directory', '../x: Is a directory'];
  const gone = 'something that is gone';
  expect(await unreadInside(root, stderrTail, scope)).toEqual(['closed.txt: Permission denied', gone, gone]);
  const many = Array.from({ length: 150 }, () => 'secret.txt: No such file or directory');
  const named = await unreadInside(root, many, scope);
  expect([named.length, named.join().includes('secret')]).toEqual([150, false]);
});

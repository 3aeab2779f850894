import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { ProcessTable } from './table.ts';

test.skipIf(process.platform !== 'linux')('a process that ends before it is read is missed, once', async () => {
  const listed: number[] = [process.pid];
  const table = new ProcessTable(
    () => true,
    () => listed,
  );
  const child = spawn('true');
  await once(child, 'close');
  listed.push(child.pid!);
  expect(table.readNew()).toEqual({ found: [], hasMissed: true });
  expect([...table.processes.keys()]).toEqual([process.pid]);
  listed.pop();
  expect(table.readNew()).toEqual({ found: [], hasMissed: false });
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { STATUS_TABLE } from '../../packages/tasks/src/ledger/rules/status.ts';
import { isNight } from '../night.ts';
import { checkModel, toModel } from './check.ts';
import { plantedModelBugs, SMALL } from './configurations.ts';

test('every reachable state of the delivery protocol is right', async () => {
  expect(await checkModel(SMALL)).toEqual({ isWhole: true, states: expect.any(Number) as number });
});

test.runIf(isNight)('every task ends without faults even if workers only take when they are woken', async () => {
  const checked = await checkModel({ ...SMALL, switches: ['NO_POLL', 'CANCELS=1'] });
  expect(checked).toEqual({ isWhole: true, states: expect.any(Number) as number });
});

test.runIf(isNight).for(plantedModelBugs)('the model rejects $bug', async ({ bug, ...rest }) => {
  const { violation } = await checkModel({ ...SMALL, ...rest, switches: [bug, ...(rest.switches ?? [])] });
  expect(violation).toBeDefined();
});

test.runIf(isNight)('a table of statuses in which a release forgets the cancel is rejected', async () => {
  const table = { ...STATUS_TABLE, cancelling: { ...STATUS_TABLE.cancelling, release: 'init' } };
  const { violation } = await checkModel({ ...SMALL, table });
  expect(violation).toBeDefined();
});

test('the model has every transition of the table of statuses', () => {
  const text = toModel(STATUS_TABLE);
  const read: Record<string, Record<string, string>> = {};
  for (const [, action, cells] of text.matchAll(/^#define AFTER_(\w+)\(s\) (.*)$/gmu)) {
    for (const [, from, to] of cells!.matchAll(/\(s\) == (\w+) -> (\w+)/gu)) {
      (read[from!.toLowerCase()] ??= {})[action!.toLowerCase()] = to!.toLowerCase();
    }
  }
  const isStatus = (cell: string): boolean => cell in STATUS_TABLE;
  const transitions = Object.fromEntries(
    Object.entries(STATUS_TABLE)
      .map(
        ([status, row]) => [status, Object.fromEntries(Object.entries(row).filter(([, to]) => isStatus(to)))] as const,
      )
      .filter(([, row]) => Object.keys(row).length > 0),
  );
  expect(read).toEqual(transitions);
});

test('a status changes only by the table in the model', async () => {
  const text = await readFile(join(import.meta.dirname, 'delivery.pml'), 'utf8');
  const correct = text.replaceAll(/#ifdef BUG_\w+\n[\s\S]*?#(?:else|endif)/gu, '');
  const written = [
    ...correct.matchAll(/\bstatus\[\w\] = ([^;\n]*)/gu),
    ...correct.matchAll(/end_task\(t, ([^;\n]*)/gu),
  ].map(([, value]) => value!);
  expect(written.length).toBeGreaterThan(6);
  expect(written.filter((value) => !/^(?:AFTER_[A-Z]+\(|INIT$|to$|to\))/u.test(value))).toEqual([]);
});

// Call this at the top of a test file: after its last test no process, descriptor, timer or temp file may be left.

import { takeInventory, waitUntilNothingIsLeft } from '@whoa/tools/testing';
import { afterAll, beforeAll, expect } from 'vitest';
import type { Inventory } from '../packages/tools/src/testing/inventory.ts';

const SETTLE_MS = 3_000;

export function expectNothingLeft(): void {
  let before: Inventory | undefined;
  beforeAll(() => {
    before = takeInventory();
  });
  afterAll(async () => {
    expect(await waitUntilNothingIsLeft(before!, SETTLE_MS)).toEqual([]);
  });
}

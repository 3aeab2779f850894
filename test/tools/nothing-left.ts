// Call this at the top of a test file: after its last test no process, descriptor, timer or temp file may be left.

import { listResources, waitForNoNewResources } from '@whoa/tools/testing';
import { afterAll, beforeAll, expect } from 'vitest';
import type { ResourceList } from '../../packages/tools/src/testing/resources.ts';

const SETTLE_MS = 3_000;

export function expectNothingLeft(): void {
  let before: ResourceList | undefined;
  beforeAll(() => {
    before = listResources();
  });
  afterAll(async () => {
    expect(await waitForNoNewResources(before!, SETTLE_MS)).toEqual([]);
  });
}

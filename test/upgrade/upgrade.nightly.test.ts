import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { storeKinds } from '../tasks/shared-stores.ts';
import { runUpgrade } from './campaign.ts';
import { createNextRelease, type Release } from './next-release.ts';

/** `npm run long -- upgrade` holds 500. */
const TASKS = 40;

let next: Release & Disposable;
beforeAll(async () => {
  next = await createNextRelease();
});
afterAll(() => next[Symbol.dispose]());

describe.concurrent('two releases share a store: forth, back, forth and finished', () => {
  test.for(storeKinds)('every task of $name ends once', async (kind) => {
    const { violations } = await runUpgrade(kind, { tasks: TASKS, next });
    expect(violations).toEqual([]);
  });
});

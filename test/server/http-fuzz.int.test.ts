import { createMemoryStore } from '@whoa/tasks';
import { expect, test } from 'vitest';
import { fuzzTaskApi } from '../campaigns/http-fuzz.ts';
import { openStore } from '../tasks/open-store.ts';
import { storeKinds } from '../tasks/shared-stores.ts';

/** The statuses that a working generator reaches: done, rejected, not found, too late. */
const REACHED = ['200', '201', '202', '204', '400', '403', '404', '409', '413', '415', '421'];

test('20,000 requests from the document: none breaks anything, none is answered with 500', async () => {
  const store = createMemoryStore();
  const counts = await fuzzTaskApi({ store, requests: 20_000, seed: 13 });
  expect(Object.keys(counts)).toEqual(expect.arrayContaining(REACHED));
  await store[Symbol.asyncDispose]();
});

test.each(storeKinds)('$name keeps or refuses whatever 2,000 requests bring', async (kind) => {
  const location = await kind.open();
  const store = openStore(location.location);
  try {
    const counts = await fuzzTaskApi({ store, requests: 2_000, seed: 15 });
    expect(counts['201']).toBeGreaterThan(10);
  } finally {
    await store[Symbol.asyncDispose]();
    await location[Symbol.asyncDispose]();
  }
});

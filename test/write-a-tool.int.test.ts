import { createToolContract } from '@whoa/tools/testing';
import { describe, test } from 'vitest';
import { fetchPage } from '../examples/write-a-tool.ts';
import { startSlowSite } from './slow-site.ts';

describe('fetch_page stops when you cancel it', () => {
  const cases = createToolContract({
    async create() {
      const site = await startSlowSite();
      return {
        tool: fetchPage,
        input: { url: site.quick },
        slow: { input: { url: site.slow }, whenBusy: site.whenAsked },
        [Symbol.asyncDispose]: () => site[Symbol.asyncDispose](),
      };
    },
  });
  for (const { name, run, skip } of cases) test.skipIf(skip !== undefined)(`${name}`, run);
});

// How much people download: each entry bundled and minified as a page would, and compressed. A limit is what was measured and a
// little more; raise one only for something that is worth its bytes.
import { gzipSync } from 'node:zlib';
// Not `build`: its service exits a little later than requested.
import { buildSync } from 'esbuild';
import { expect, test } from 'vitest';
import { findCopies, measureBundle } from '../bench/measure/bundle.ts';
import { ROOT } from './docs/pages.ts';

/**
 * What is imported → the most bytes it may have after gzip.
 *
 * The aims are 3,000 for the token and 20,000 for the core. The token is 3,100 even without its checks of options and reasons,
 * long timers and leak statistics; an agent alone is 22,700, so no move between entries gets the core there.
 */
const LIMITS: Readonly<Record<string, number>> = {
  // 15 of it, here and below: the trace context of a cancel; 230 of each: the nearest name for a misspelt setting.
  "export { CancellationToken } from '@whoa/core'": 4_250,
  "export { isCancelledError } from '@whoa/core'": 200,
  "export { sleep } from '@whoa/core'": 950,
  "export { LADDERS } from '@whoa/core/embed'": 120,
  // 50 of it: `graceMs`, and warnings that show their cause.
  "export { guard } from '@whoa/core'": 6_560,
  // 190 of it: tools that a user or a client answers. Below, 630 of each.
  "export { defineTool } from '@whoa/core'": 2_100,
  // 670 of it: effect keys, `findOut`, and calls that repeat.
  "export { createRuntime } from '@whoa/core'": 15_900,
  // 100 of it: undo in sub-agents and after a crash. 30: budgets and approvals of a run that another worker continues.
  // 3,900: budgets in money, asking for more, and sub-agents that another worker continues. Below too.
  "export { createAgent } from '@whoa/core'": 30_700,
  // 100 of it: conversations that hooks remove, cancel or dispose while a message arrives.
  "export * from '@whoa/core'": 36_400,
  // 100 of it: questions at the same time, and what a user types as an answer.
  "export * from '@whoa/core/approval'": 2_270,
  "export * from '@whoa/core/model'": 1_650,
  // 1,500 of it: what a turn added, approvals that run once, and replies that were cut off in a call of the provider. 530:
  // the options of an application together with those of its turn.
  "export * from '@whoa/ai-sdk'": 20_800,
  "export * from '@whoa/server/task-client'": 2_430,
};

test.each(Object.entries(LIMITS))('%s stays small', (contents, limit) => {
  const { outputFiles } = buildSync({
    stdin: { contents, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2023',
    platform: 'neutral',
    conditions: ['@whoa/source'],
    write: false,
  });
  const bytes = gzipSync(outputFiles[0]!.contents, { level: 9 }).length;
  expect(bytes).toBeLessThanOrEqual(limit);
});

/** Nothing of `ai` is among it, and nothing of the server. */
const MAX_ADDED = 10_000;

test.each(findCopies())('the stoppable chat adds little to plain `useChat` ($name)', ({ alias }) => {
  const [ours, bare] = ["useStoppableChat } from '@whoa/server/client'", "useChat } from '@ai-sdk/react'"].map(
    (named) => measureBundle(`export { ${named};`, { alias, isSource: true }),
  );
  expect(ours! - bare!).toBeLessThanOrEqual(MAX_ADDED);
});

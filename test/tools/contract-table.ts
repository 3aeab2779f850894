// Puts tools through the contract with vitest and prints one table: a row per tool, a column per case.

import type { ToolContractOptions } from '@whoa/tools/testing';
import { createToolContract } from '@whoa/tools/testing';
import { afterAll, describe, test } from 'vitest';

/** A tool that stops does so immediately; on a busy machine that takes a while. */
const BUSY_MS = 30_000;

export function describeToolContract(subjects: Readonly<Record<string, ToolContractOptions>>): void {
  const rows = new Map<string, Record<string, string>>();
  for (const [name, options] of Object.entries(subjects)) {
    const row: Record<string, string> = {};
    rows.set(name, row);
    describe(`${name}`, () => {
      for (const { id, name: title, skip, run } of createToolContract({ timeoutMs: BUSY_MS, ...options })) {
        row[id] = skip === undefined ? 'FAILED' : `skipped: ${skip}`;
        test.skipIf(skip !== undefined)(`${title}`, async () => {
          const started = performance.now();
          await run();
          row[id] = `${(performance.now() - started).toFixed(0)} ms`;
        });
      }
    });
  }
  afterAll(() => {
    console.table(Object.fromEntries(transpose(rows)));
  });
}

function transpose(rows: ReadonlyMap<string, Readonly<Record<string, string>>>): Map<string, Record<string, string>> {
  const columns = new Map<string, Record<string, string>>();
  for (const [name, row] of rows) {
    for (const [id, outcome] of Object.entries(row)) {
      columns.set(id, { ...columns.get(id), [name]: outcome });
    }
  }
  return columns;
}

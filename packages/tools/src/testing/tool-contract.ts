import { cancelledCases } from './cancelled-cases.ts';
import { Stage } from './harness.ts';
import { orderlyCases } from './normal-cases.ts';
import type { ToolContractCaseId, ToolUnderTest } from './subject.ts';
import { wrappedCases } from './wrapped-cases.ts';

/** The options of the tool contract. */
export interface ToolContractOptions {
  /** Creates the tool for one case, with inputs for it. */
  readonly create: () => ToolUnderTest | Promise<ToolUnderTest>;
  /** Cases that cannot apply to this tool, by id, each with its reason. */
  readonly skip?: Readonly<Partial<Record<ToolContractCaseId, string>>>;
  /** The longest a tool may take to stop after an abort. */
  readonly timeoutMs?: number;
}

/** One case as data: run it with any test runner. It rejects if the tool breaks the contract. */
export interface ToolContractCase {
  readonly id: ToolContractCaseId;
  /** A sentence about behaviour. */
  readonly name: string;
  /** If set, don't run this case. It says why. */
  readonly skip?: string;
  /** Runs the case. It rejects if the tool does not keep the contract. */
  readonly run: () => Promise<void>;
}

const BOUND_MS = 2_000;

/**
 * Checks that a tool stops as the runtime expects, as cases for any test runner.
 *
 * @returns The cases.
 *
 * @example
 * ```ts
 * import { createFileTools } from '@whoa/tools';
 * import { createToolContract } from '@whoa/tools/testing';
 * import { test } from 'vitest';
 *
 * const [read] = createFileTools({ root: '.' });
 * const input = { path: 'README.md' };
 * for (const { name, run, skip } of createToolContract({ create: () => ({ tool: read!, input, slow: { input } }) })) {
 *   test.skipIf(skip)(name, run);
 * }
 * ```
 */
export function createToolContract({
  create,
  skip = {},
  timeoutMs = BOUND_MS,
}: ToolContractOptions): ToolContractCase[] {
  return [...orderlyCases, ...cancelledCases, ...wrappedCases].map(({ id, name, check }) => ({
    id,
    name,
    ...(skip[id] !== undefined && { skip: skip[id] }),
    async run() {
      const subject = await create();
      const stage = new Stage(timeoutMs);
      try {
        await check(subject, stage);
      } finally {
        stage[Symbol.dispose]();
        await subject[Symbol.asyncDispose]?.();
      }
    },
  }));
}

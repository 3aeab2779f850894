// Broken agents behind `whoa acp -- COMMAND`, judged by the kit.
import { join } from 'node:path';
import { type CheckReport, createAcpAdapter, createCheckHarness, runChecks } from '@whoa/check';
import { ROOT } from '../docs/pages.ts';
import type { Bug, Flawless } from './faulty-agents/bugs.ts';

const AGENT = join(import.meta.dirname, 'faulty-agents/agent.ts');
const WHOA = join(ROOT, 'packages/whoa/src/bin.ts');

/** The checks that fail when a process that cannot load its sessions has to be ended. */
const MEMORY: readonly string[] = ['next-knows-prompt', 'next-knows-text', 'next-knows-call', 'next-keeps-finished'];

/** The faulty agents, and the checks that no proxy can fix. */
export const BROKEN: Readonly<Partial<Record<Bug | Flawless, readonly string[]>>> = {
  'never-answers': MEMORY,
  slow: [],
  'two-ends': [],
  'end-turn': [],
  'abort-error': [],
  'open-calls': [],
  orphans: [],
  daemons: [],
  floods: [],
  // The other conversation was in the same process.
  dies: [...MEMORY, 'other-conversation'],
  'ignores-sigterm': [],
  garbage: [],
};

/** Runs the kit on a broken agent behind the proxy. */
export async function checkProxied(bug: string, only?: readonly string[]): Promise<CheckReport> {
  const node = [process.execPath, '--conditions=@whoa/source', '--no-warnings'];
  await using harness = await createCheckHarness();
  await using adapter = createAcpAdapter({ command: [...node, WHOA, 'acp', '--', ...node, AGENT, bug] });
  return await runChecks({ adapter, harness, settleMs: 3_000, ...(only !== undefined && { only }) });
}

/** The checks that were not passed, and why. */
export function findFailures({ results }: CheckReport): readonly string[] {
  return results.flatMap(({ id, status, detail }) =>
    status === 'failed' || status === 'unclear' ? [`${id}: ${detail ?? status}`] : [],
  );
}

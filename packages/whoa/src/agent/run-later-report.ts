import type { Agent } from '@whoa/core';
import { findRunLater, type SandboxOptions } from '@whoa/tools';
import { oneLine } from '../terminal/text/plain-text.ts';

const MAX_LINES = 20;
const MAX_CHARACTERS = 200;

export interface RunLaterOptions {
  readonly sandbox: SandboxOptions;
  /** Prints the lines. Defaults to standard error. */
  readonly onRunLater?: (lines: readonly string[]) => void;
}

/** Reports what changed during each run and runs programs later, outside the sandbox. Dispose it to wait for the reports. */
export function reportRunLater(
  agent: Agent,
  { sandbox, onRunLater = print }: RunLaterOptions,
): Agent & AsyncDisposable {
  const { kind, workspace } = sandbox;
  let last: Promise<void> = Promise.resolve();
  const look = async (before: Promise<unknown>[], since: number): Promise<void> => {
    await Promise.allSettled(before);
    const lines = await findRunLater(workspace!, since);
    const more = lines.length - MAX_LINES;
    const shown = lines.slice(0, MAX_LINES).map((line) => oneLine(line, MAX_CHARACTERS));
    if (shown.length > 0) onRunLater(more > 0 ? [...shown, `and ${more} more`] : shown);
  };
  return {
    ...agent,
    run(input, options) {
      const run = agent.run(input, options);
      if (kind === 'workspace' && workspace !== undefined) last = look([last, run.outcome], Date.now());
      return run;
    },
    [Symbol.asyncDispose]: () => last,
  };
}

/** What the lines are. */
export const RUN_LATER = 'Changed in this run, and runs outside the sandbox later:';

function print(lines: readonly string[]): void {
  process.stderr.write([`whoa: ${RUN_LATER}`, ...lines].join('\n  ').concat('\n'));
}

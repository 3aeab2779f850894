import { createInterface } from 'node:readline/promises';
import type { ApprovalRequest, Approve } from '@whoa/core';
import { plainText } from '../terminal/plain-text.ts';
import type { Screen } from '../terminal/screen.ts';

export interface ApprovalOptions {
  readonly screen: Screen;
  /** Everything is allowed. */
  readonly yes: boolean;
  readonly input?: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly output?: NodeJS.WritableStream;
}

const CHOICES = '[y]es, [n]o, [a]lways, or say why not';
const LINES_MAX = 20;

/** Asks the person at the terminal before a call writes or executes, one question at a time. */
export function createTerminalApproval(options: ApprovalOptions): Approve {
  const { screen, yes, input = process.stdin, output = process.stderr } = options;
  const always = new Set<string>();
  let last: Promise<unknown> = Promise.resolve();

  async function ask({ call, tool, effects }: ApprovalRequest, signal: AbortSignal): Promise<boolean | string> {
    if (always.has(tool.name)) return true;
    if (signal.aborted) return 'cancelled before anybody answered';
    screen.note(`${screen.style('magenta', '?')} ${screen.style('bold', tool.name)} wants to ${effects}:`);
    for (const line of linesOf(call.input)) screen.note(`    ${line}`);
    const held = screen.hold();
    // Not a terminal to readline: the kernel edits the line, and Ctrl-C stays a signal.
    const lines = createInterface({ input, output, terminal: false });
    // At the end of the input nobody will ever answer.
    const closed = Promise.withResolvers<string>();
    lines.once('close', () => closed.resolve('n'));
    try {
      const answer = (await Promise.race([lines.question(`  ${CHOICES}: `, { signal }), closed.promise])).trim();
      if (/^a(lways)?$/i.test(answer)) always.add(tool.name);
      if (/^(y(es)?|a(lways)?)$/i.test(answer)) return true;
      return /^(n(o)?)?$/i.test(answer) ? false : answer;
    } catch (error) {
      if (!signal.aborted) throw error;
      output.write('\n');
      return 'cancelled before anybody answered';
    } finally {
      lines.close();
      held[Symbol.dispose]();
    }
  }

  return (request, { signal }) => {
    if (yes) return true;
    if (!input.isTTY) {
      return 'nobody could be asked, because standard input is not a terminal; the person can run it again with --yes';
    }
    const asked = last.then(() => ask(request, signal));
    last = asked.catch(() => {});
    return asked;
  };
}

/** The whole input, as far as a person can read it: who says yes must have seen what to. */
function linesOf(input: unknown): string[] {
  const { command } = (input ?? {}) as { readonly command?: unknown };
  const text = typeof command === 'string' ? command : (JSON.stringify(input, undefined, 2) ?? '');
  const lines = plainText(text).split('\n');
  const more = lines.length - LINES_MAX;
  return more > 0 ? [...lines.slice(0, LINES_MAX), `… and ${more} more lines`] : lines;
}

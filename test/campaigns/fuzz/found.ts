/** What a campaign saw: its moves by name, and what was wrong. */
export class Found {
  readonly counts: Record<string, number> = {};
  readonly problems: string[] = [];
  /** Set before each seed, for the problems. */
  where = '';

  count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1;
  }

  /** Notes a problem unless `isRight`. */
  expect(isRight: boolean, problem: string): void {
    if (!isRight && this.problems.length < MAX_PROBLEMS) this.problems.push(`${this.where}: ${problem}`);
  }
}

const MAX_PROBLEMS = 20;

/** Lets everything react that waits for nothing but promises and the event loop. */
export async function settle(turns = 3): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

interface Part {
  readonly type: string;
  readonly callId?: string;
}

export interface AnyMessage {
  readonly role: string;
  readonly content: unknown;
  readonly callId?: string;
}

/** What is wrong with the calls and results of a history. Every call must have one result, before the next message. */
export function findUnmatched(messages: readonly AnyMessage[]): string | undefined {
  const open = new Set<string>();
  const seen = new Set<string>();
  for (const { role, content, callId = '' } of messages) {
    if (role === 'tool') {
      if (!open.delete(callId)) return 'a result without an open call';
      continue;
    }
    if (open.size > 0) return `a ${role} message while a call is open`;
    for (const part of role === 'assistant' ? (content as readonly Part[]) : []) {
      if (part.type !== 'call') continue;
      if (seen.has(part.callId!)) return 'two calls with one id';
      seen.add(part.callId!);
      open.add(part.callId!);
    }
  }
  return open.size > 0 ? 'an open call at its end' : undefined;
}

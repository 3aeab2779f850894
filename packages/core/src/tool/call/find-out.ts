import { isObject } from '../../stop/settings.ts';
import type { CancellationToken } from '../../stop/token/token.ts';
import { waitUntilLevel } from '../../stop/wait.ts';
import type { CallResult } from '../result.ts';
import type { Finding, FindOutContext, RawResult, Tool } from '../tool.ts';
import { toEnding, withoutEffect } from './ending.ts';

/** The longest that one look may take. */
export const FIND_OUT_MS = 5_000;

/**
 * The call took effect.
 *
 * @returns What `findOut` returns. `result` becomes the call's result.
 */
export function finished(result: RawResult): Finding {
  return { found: 'finished', result };
}

/**
 * The call had no effect, and can have none any more. "Nothing was found" does not prove it: the effect may still be on its way.
 *
 * @returns What `findOut` returns.
 */
export function notStarted(): Finding {
  return { found: 'not-started' };
}

/**
 * Nothing is proved, for now.
 *
 * @returns What `findOut` returns.
 */
export function stillUnknown(): Finding {
  return { found: 'unknown' };
}

interface Look {
  readonly tool: Tool;
  readonly input: unknown;
  readonly about: Omit<FindOutContext, 'signal'>;
  /** Ends the look, at `kill` at the latest. */
  readonly token: CancellationToken;
  readonly leaveRunning: (what: string, ended: PromiseLike<unknown>) => void;
}

/** Looks once. An error, the end of its time, and anything that is not a finding mean that it is still unknown. */
export async function look({ tool, input, about, token, leaveRunning }: Look): Promise<Finding> {
  const looking = Promise.resolve().then(() => tool.findOut!(input, { ...about, signal: token.signal }));
  const end = await waitUntilLevel(looking, token, 'kill');
  if (end.by === 'level') leaveRunning('finding out', looking);
  return end.by === 'value' && isFinding(end.value) ? end.value : stillUnknown();
}

/**
 * Asks a tool how the call of a lost worker ended.
 *
 * @returns The call's result, marked as found out; `undefined` if it is still unknown.
 */
export async function findOutResult(
  tool: Tool,
  { token, ...call }: Pick<Look, 'input' | 'about' | 'token'>,
): Promise<CallResult | undefined> {
  const limit = token.child({ name: `finding out about ${tool.name}`, minimumLevel: 'abort' });
  limit.cancelAfter(FIND_OUT_MS, { kind: 'deadline' }, { mode: 'kill' });
  try {
    const finding = await look({ tool, ...call, token: limit, leaveRunning: () => {} });
    if (finding.found === 'unknown') return undefined;
    const at = token.clock.now();
    const about = { callId: call.about.callId, tool: tool.name, startedAt: call.about.startedAt, endedAt: at };
    const known = { about, effects: tool.effects, nested: false, shown: undefined, redact: undefined };
    const result =
      finding.found === 'finished'
        ? toEnding({ state: 'finished', value: finding.result }, known).result
        : withoutEffect(about);
    return Object.freeze({ ...result, foundOut: { at } });
  } finally {
    limit[Symbol.dispose]();
  }
}

function isFinding(value: unknown): value is Finding {
  if (!isObject(value)) return false;
  const { found } = value as Partial<Finding>;
  return found === 'not-started' || found === 'unknown' || (found === 'finished' && 'result' in value);
}

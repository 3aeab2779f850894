import type { Clock } from '../clock.ts';
import { isObject, type Rule, type Rules, unexpected } from '../settings.ts';
import { CancellationToken } from './token.ts';

/** What may cancel something from outside: a token, a signal (which means `now`), or both. */
export interface CancelSource {
  readonly token?: CancellationToken | undefined;
  readonly signal?: AbortSignal | undefined;
}

const token: Rule = (value, field) => {
  if (value instanceof CancellationToken) return value;
  throw unexpected(field, value, isSignal(value) ? 'a CancellationToken; pass a signal as `signal`' : TOKEN);
};

const signal: Rule = (value, field) => {
  if (isSignal(value)) return value;
  const expected = value instanceof CancellationToken ? 'an AbortSignal; pass a token as `token`' : SIGNAL;
  throw unexpected(field, value, expected);
};

const TOKEN = 'a CancellationToken (of this copy of @whoa/core)';
const SIGNAL = 'an AbortSignal';

/** The rules for the options `token` and `signal`. */
export const SOURCE_RULES: Rules<CancelSource> = { token, signal };

function isSignal(value: unknown): value is AbortSignal {
  if (!isObject(value)) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === 'boolean' && typeof addEventListener === 'function';
}

/** Creates the token of some work, cancelled by its source. Dispose it when the work has ended. */
export function tokenFor(source: CancelSource, options: { name: string; clock?: Clock }): CancellationToken {
  const all = { parent: source.token, ...options };
  return source.signal === undefined ? new CancellationToken(all) : CancellationToken.from(source.signal, all);
}

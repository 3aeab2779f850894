import { boundedMs, type Rule } from '../settings.ts';
import { CancellationToken } from './token.ts';

/** No shield lasts longer than this. */
export const MAX_SHIELD_MS = 600_000;

/** The rule for the time limit of work that must not be interrupted. */
export const shieldMs: Rule = boundedMs({ max: MAX_SHIELD_MS });

/**
 * Creates a token that ignores its parent, for work that must not be interrupted. It still has a deadline: after
 * `timeoutMs` it is killed. Dispose it when the work has ended.
 *
 * @returns The shielded token.
 * @throws {@link SettingsError} when `timeoutMs` is not a duration, or longer than a shield may last.
 *
 * @example
 * ```ts
 * import { shield } from '@whoa/core/embed';
 *
 * using shielded = shield(token, { timeoutMs: 5_000, name: 'commit' });
 * await fetch('https://bank.example.com/commit', { method: 'POST', signal: shielded.signal });
 * ```
 */
export function shield(
  parent: CancellationToken,
  options: { timeoutMs: number; name?: string | undefined },
): CancellationToken {
  const { timeoutMs, name = `${parent.name} (shielded)` } = options;
  shieldMs(timeoutMs, 'timeoutMs');
  const token = new CancellationToken({ parent, name, inheritFrom: 'nothing' });
  token.cancelAfter(
    timeoutMs,
    { kind: 'deadline', message: `${name} took longer than ${timeoutMs} ms` },
    { mode: 'kill' },
  );
  return token;
}

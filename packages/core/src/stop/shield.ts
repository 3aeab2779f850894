import { boundedMs, type Rule } from './settings.ts';
import { CancellationToken } from './token.ts';

/** No shield lasts longer than this. */
export const SHIELD_MS_MAX = 600_000;

/** The rule for a bound of work that must not be cut. */
export const shieldMs: Rule = boundedMs({ max: SHIELD_MS_MAX });

/**
 * A token that hears nothing from above: for work that must not be cut in half. Its own deadline still holds, so it is
 * never a way to run for ever: after `boundMs` it is killed. Dispose it when the work has ended.
 */
export function shield(parent: CancellationToken, options: { boundMs: number; name?: string }): CancellationToken {
  const { boundMs, name = `${parent.name} (shielded)` } = options;
  shieldMs(boundMs, 'boundMs');
  const token = new CancellationToken({ parent, name, hears: 'nothing' });
  token.cancelAfter(boundMs, { kind: 'deadline', message: `${name} took longer than ${boundMs} ms` }, { how: 'kill' });
  return token;
}

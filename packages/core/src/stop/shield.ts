import { CancellationToken } from './token.ts';

/** No shield lasts longer than this. */
export const SHIELD_MS_MAX = 600_000;

/**
 * A token that hears nothing from above: for work that must not be cut in half. Its own deadline still holds, so it is
 * never a way to run for ever: after `boundMs` it is killed. Dispose it when the work has ended.
 */
export function shield(parent: CancellationToken, options: { boundMs: number; name?: string }): CancellationToken {
  const { boundMs, name = `${parent.name} (shielded)` } = options;
  if (!(boundMs > 0 && boundMs <= SHIELD_MS_MAX)) {
    throw new RangeError(`boundMs: a shield needs a bound of at most ${SHIELD_MS_MAX} ms, got ${boundMs}`);
  }
  const token = new CancellationToken({ parent, name, hears: 'nothing' });
  token.cancelAfter(boundMs, { kind: 'deadline', message: `${name} took longer than ${boundMs} ms` }, { how: 'kill' });
  return token;
}

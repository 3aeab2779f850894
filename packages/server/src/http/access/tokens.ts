import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { SettingsError } from '@whoa/core';
import type { Authenticate, Principal } from './principal.ts';

/** A principal with a token. Only the hash is kept: it cannot be used as a token. */
interface TokenEntry extends Principal {
  /** SHA-256 of the token, in hexadecimal digits. */
  readonly sha256: string;
}

/**
 * Creates a new random token. Show it once and keep only the hash.
 *
 * @returns The token and its hash.
 */
export function createToken(): { readonly token: string; readonly sha256: string } {
  const token = `whoa_${randomBytes(32).toString('base64url')}`;
  return { token, sha256: hash('sha256', token) };
}

/**
 * Identifies principals by `Authorization: Bearer TOKEN`. A plain hash is enough for tokens of `createToken`, which
 * cannot be guessed. Don't use it with hashes of passwords that users chose.
 *
 * @returns A function for `authenticate`.
 * @throws {@link SettingsError} when an entry has no valid hash.
 */
export function createTokenAuthenticator(entries: readonly TokenEntry[]): Authenticate {
  const known = entries.map(({ sha256, ...principal }) => {
    if (!/^[0-9a-f]{64}$/i.test(sha256))
      throw new SettingsError(`sha256 of '${principal.name}'`, 'expected 64 hex digits');
    return { digest: Buffer.from(sha256, 'hex'), principal };
  });
  return (request) => {
    const [, token] = /^Bearer +(\S+)$/i.exec(request.headers.get('authorization') ?? '') ?? [];
    if (token === undefined) return undefined;
    const shown = hash('sha256', token, 'buffer');
    // Don't stop at the first match: the time must not reveal which entry matched.
    return known.reduce<Principal | undefined>(
      (found, { digest, principal }) => (timingSafeEqual(digest, shown) ? principal : found),
      undefined,
    );
  };
}

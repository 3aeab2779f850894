import { createHash } from 'node:crypto';

const CHARACTERS = 12;

/** Names a claim to those who may not know it. */
export function hashClaim(claim: string): string {
  return createHash('sha256').update(claim).digest('hex').slice(0, CHARACTERS);
}

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Authenticate, createToken, createTokenAuthenticator, type Right, USER_RIGHTS } from '@whoa/server';
import { UsageError } from '../command.ts';
import type { ConnectionContext } from '../system.ts';
import { LOCAL_TENANT } from '../tasks/local-tasks.ts';
import { TOKEN_VARIABLE } from '../tasks/source/token-variable.ts';

/** Shorter tokens could be guessed from their hash, which has no salt. */
const MIN_CHARACTERS = 20;
const RIGHTS: readonly Right[] = [...USER_RIGHTS, 'operate', 'halt'];

/** The tokens that a server accepts. */
export interface ServerTokens {
  readonly authenticate: Authenticate;
  /** The token that was created because none was set. It is shown once. */
  readonly made?: string;
}

/** Reads the tokens of a file; otherwise the one in the environment, which has all rights; otherwise creates one. */
export function readServerTokens(file: string | undefined, { env, cwd }: ConnectionContext): ServerTokens {
  if (file !== undefined) return { authenticate: createTokenAuthenticator(readTokenFile(resolve(cwd(), file))) };
  const given = env[TOKEN_VARIABLE];
  // Commands of agents in this process must not see it.
  delete env[TOKEN_VARIABLE];
  if (given !== undefined && given.length < MIN_CHARACTERS)
    throw new UsageError(`${TOKEN_VARIABLE}: too short; use at least ${MIN_CHARACTERS} random characters`);
  const { token, sha256 } = given === undefined ? createToken() : { token: given, sha256: hashToken(given) };
  const entry = { sha256, tenant: LOCAL_TENANT, name: 'operator', rights: RIGHTS };
  return { authenticate: createTokenAuthenticator([entry]), ...(given === undefined && { made: token }) };
}

function readTokenFile(file: string): Parameters<typeof createTokenAuthenticator>[0] {
  const wrong = (what: string): UsageError =>
    new UsageError(
      `--token-file: ${file} ${what}; write [{ "sha256": "…", "tenant": "acme", "name": "ann", "rights": ["read", "cancel"] }]`,
    );
  let entries: unknown;
  try {
    entries = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw wrong(`cannot be read (${(error as Error).message})`);
  }
  if (!Array.isArray(entries) || entries.length === 0) throw wrong('is not a list of tokens');
  return entries.map((entry: unknown, index) => {
    const { sha256, tenant, name, rights } = (entry ?? {}) as Record<string, unknown>;
    const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
    const isHash = isText(sha256) && /^[0-9a-f]{64}$/i.test(sha256);
    if (!isHash) throw wrong(`is not valid: the sha256 of token ${index + 1} is not 64 hexadecimal digits`);
    if (!isText(tenant) || !isText(name)) throw wrong(`is not valid: token ${index + 1} has no tenant or no name`);
    if (!Array.isArray(rights) || !rights.every((right) => RIGHTS.includes(right as Right)))
      throw wrong(`is not valid: token ${index + 1} has rights other than ${RIGHTS.join(', ')}`);
    return { sha256, tenant, name, rights: rights as Right[] };
  });
}

function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

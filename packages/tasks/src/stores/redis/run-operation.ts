import type { Redis } from 'ioredis';
import type { Connection, Sent } from './connection/connection.ts';
import { LIBRARY_NAME, type Library } from './library.ts';
import { OPERATIONS, type OperationName } from './operations.ts';
import { adviceOn, parseErrorCode } from './replies/refusals.ts';

/** What has less time is not sent: without a reply, its outcome would be unknown for no reason. */
export const LAST_MS = 60;
/** How long a write waits for its replicas. */
const REPLICAS_WAIT_MS = 1_000;

type Issue = (client: Redis) => Promise<unknown>;

interface Request {
  readonly library: Library;
  readonly name: OperationName;
  /** The key and the arguments. */
  readonly values: readonly (string | number)[];
  /** How many replicas must have it before the reply counts. */
  readonly copies: number;
}

/**
 * Calls the function of an operation. A server that does not know it gets the library; one that does not allow functions
 * gets the same rules as a script.
 */
export async function runOperation(connection: Connection, request: Request, ms: number): Promise<Sent> {
  const { library, name, values } = request;
  const until = performance.now() + ms;
  const send = (issue: Issue): Promise<Sent> =>
    sendUntil(connection, (client) => toCopied(client, issue(client), request.copies), until);
  const method = OPERATIONS[name].mode === 'reads' ? 'fcall_ro' : 'fcall';
  const call: Issue = (client) => client[method](library.toFunction(name), 1, ...values);
  if (!connection.refusesFunctions) {
    const sent = await send(call);
    if (!('refused' in sent)) return sent;
    if (isForbidden(sent.refused)) connection.refusesFunctions = true;
    else if (!isUnknown(sent)) return sent;
    else {
      const loading = load(connection, library, until);
      // Don't wait for that: sent together, both cost one more trip.
      const again = await send(call);
      if (!isUnknown(again)) return again;
      connection.refusesFunctions = isLasting(await loading);
    }
  }
  // Its hash, and its full text to a server that does not know it.
  const { source, sha } = library.toScript(name);
  const short = await send((client) => client.evalsha(sha, 1, ...values, name));
  if (!('refused' in short) || parseErrorCode(short.refused) !== 'NOSCRIPT') return short;
  return send((client) => client.eval(source, 1, ...values, name));
}

function sendUntil(connection: Connection, issue: Issue, until: number): Promise<Sent> {
  const ms = until - performance.now();
  // Not the last refusal: a server that refuses the full text does not know it the next time either.
  return ms < LAST_MS ? Promise.resolve({ unsent: undefined }) : connection.send(issue, ms);
}

/** Returns a reply once enough replicas have what was done. */
function toCopied(client: Redis, reply: Promise<unknown>, copies: number): Promise<unknown> {
  if (copies === 0) return reply;
  // Sent right after: the server replies when the replicas have the first command.
  return Promise.all([reply, client.wait(copies, REPLICAS_WAIT_MS)]).then(([answer, reached]) => {
    if (reached >= copies) return answer;
    throw new Error(`${reached} of ${copies} replicas have it`);
  });
}

/** Operations that need the library at the same time load it once. */
function load(connection: Connection, { source }: Library, until: number): Promise<Sent> {
  connection.loading ??= sendUntil(connection, (client) => client.function('LOAD', source), until).finally(
    () => (connection.loading = undefined),
  );
  return connection.loading;
}

/** Deletes the libraries of other versions. Processes that still need one load it again. */
export async function removeOtherLibraries(connection: Connection, { name }: Library, ms: number): Promise<Sent> {
  const sent = await connection.send((client) => client.function('LIST', 'LIBRARYNAME', 'whoa_*'), ms);
  const found = 'reply' in sent ? (sent.reply as readonly (readonly string[])[]) : [];
  const others = found.map(([, other]) => other!).filter((other) => LIBRARY_NAME.test(other) && other !== name);
  for (const other of others) await connection.send((client) => client.function('DELETE', other), ms);
  // A user without the right leaves them: they only use some memory.
  return 'refused' in sent && isForbidden(sent.refused) ? { reply: null } : sent;
}

function isUnknown(sent: Sent): boolean {
  return 'refused' in sent && sent.refused.message === 'ERR Function not found';
}

/** Returns whether the user may not use functions, or the server has none. */
function isForbidden({ message }: Error): boolean {
  return /^(NOPERM|ERR unknown command)/.test(message);
}

/** A replica, or a server without memory, may take the library later. One that has it has lost it again since. */
function isLasting(loaded: Sent): boolean {
  if (!('refused' in loaded)) return false;
  return adviceOn(loaded.refused) === undefined && !loaded.refused.message.endsWith('already exists');
}

import { setTimeout as wait } from 'node:timers/promises';
import { StoreBusyError, StoreClosedError } from '../../errors.ts';
import { UnknownOutcomeError } from '../../unknown-outcome.ts';
import { type Client, connect, leave, waitForReady } from './client.ts';
import { REPLICAS_WAIT_MS, type RedisStoreOptions, TIMEOUT_MS } from './options.ts';
import type { Script } from './scripts.ts';

export type Reply = string | number | null | readonly Reply[];

const RETRY_MS = 20;
const LAST_MS = 3 * RETRY_MS;
/** More microtasks than a promise of the client needs to be refused. */
const MOMENT_STEPS = 20;
/** Nothing was carried out, and it may be otherwise in a moment. */
const NOT_NOW = /^(READONLY|NOREPLICAS|MASTERDOWN|LOADING|CLUSTERDOWN|TRYAGAIN|BUSY|OOM)\b/;

/** It is no longer the master, or cut off from its replicas: the Sentinels, or a name server, may know another. */
const MOVE_ON = { alone: /^READONLY\b/, watched: /^(READONLY|NOREPLICAS|MASTERDOWN)\b/ };

/** What became of one attempt: an answer, surely nothing yet, nobody knows, or nothing that asking again would mend. */
type Attempt =
  | { readonly reply: Reply }
  | { readonly not: unknown }
  | { readonly lost: unknown }
  | { readonly wrong: unknown };

/** Calls scripts on the server, one round trip each, and says truthfully what it knows of their outcome. */
export class Calls implements AsyncDisposable {
  readonly #options: RedisStoreOptions;
  readonly #timeoutMs: number;
  #client: Promise<Client> | undefined;
  #leaving: Promise<void> | undefined;
  #closed = false;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  async call(script: Script, tag: string, values: readonly (string | number)[]): Promise<Reply> {
    const until = performance.now() + this.#timeoutMs;
    let why: unknown;
    for (;;) {
      if (this.#closed) throw new StoreClosedError();
      const attempt = await this.#attempt(script, [tag, ...values], until);
      if ('reply' in attempt) return attempt.reply;
      if ('wrong' in attempt) throw attempt.wrong;
      if ('lost' in attempt && !script.isRepeatable) {
        throw new UnknownOutcomeError(script.name, { cause: attempt.lost });
      }
      why = ('lost' in attempt ? attempt.lost : attempt.not) ?? why;
      // Don't begin what cannot end in time: its outcome would be unknown for no reason.
      if (until - performance.now() < LAST_MS) throw this.#busy(script, why);
      await wait(RETRY_MS);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    (await this.#client?.catch(() => undefined))?.disconnect();
  }

  #busy({ name }: Script, cause: unknown): StoreBusyError {
    const said = cause instanceof Error ? cause.message : 'no connection';
    return new StoreBusyError(
      `Redis could not carry out '${name}' within ${this.#timeoutMs} ms (${said}); nothing was changed, try again`,
      { cause },
    );
  }

  async #attempt(script: Script, values: readonly (string | number)[], until: number): Promise<Attempt> {
    const client = await (this.#client ??= connect(this.#options, 'whoa'));
    // Don't send on a connection that is about to be closed: the answer would be lost.
    await this.#leaving;
    if (client.status !== 'ready' && !(await waitForReady(client, until - performance.now()))) {
      return { not: undefined };
    }
    return new Promise((resolve) => {
      // Send first: whatever else there is to do is done while the server works.
      const sent = client.evalsha(script.sha, 1, ...values);
      // A whole number of milliseconds, most often the same: then timers share a list and cost next to nothing.
      const timer = setTimeout(
        () => resolve({ lost: new Error(`no answer within ${this.#timeoutMs} ms`) }),
        Math.ceil(until - performance.now()),
      );
      const answered = (reply: Reply): void => {
        clearTimeout(timer);
        resolve({ reply });
      };
      const isStillNow = this.#options.cluster === true ? startMoment() : () => false;
      const failed = (error: Error): void => {
        clearTimeout(timer);
        this.#moveOn(client, error);
        // A Cluster's client refuses what it cannot send yet in the words it has for a lost answer, but at once.
        resolve(isStillNow() ? { not: error } : attemptOf(error));
      };
      this.#answer(client, script, sent).then(answered, (error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) return failed(error);
        // The server was restarted, or is a new one. It knows the script from now on.
        return this.#answer(client, script, client.eval(script.source, 1, ...values)).then(answered, failed);
      });
    });
  }

  #moveOn(client: Client, { message }: Error): void {
    const { cluster, sentinel } = this.#options;
    if (cluster || !MOVE_ON[sentinel === undefined ? 'alone' : 'watched'].test(message)) return;
    this.#leaving ??= leave(client).finally(() => (this.#leaving = undefined));
  }

  /** The answer to what has just been sent, once as many replicas have it as are wanted. */
  #answer(client: Client, script: Script, sent: Promise<unknown>): Promise<Reply> {
    const { replicas } = this.#options;
    const reply = sent as Promise<Reply>;
    if (replicas === undefined || script.isRepeatable) return reply;
    // Sent right behind: the server answers this one when the replicas have the first.
    const copies = client.wait(replicas.atLeast, replicas.waitMs ?? REPLICAS_WAIT_MS);
    return Promise.all([reply, copies]).then(([answer, reached]) => {
      if (reached >= replicas.atLeast) return answer;
      const cause = new Error(`${reached} of ${replicas.atLeast} replicas have it`);
      throw new UnknownOutcomeError(script.name, { cause });
    });
  }
}

/** Whether it is still the moment in which it began: nothing can have gone out and come back in it. */
function startMoment(): () => boolean {
  let left = MOMENT_STEPS;
  const step = (): void => {
    if (--left > 0) queueMicrotask(step);
  };
  step();
  return () => left > 0;
}

/** What an error says about what happened. */
function attemptOf(error: Error): Attempt {
  const { name, message } = error;
  if (error instanceof UnknownOutcomeError) return { wrong: error };
  if (message.includes('enableOfflineQueue')) return { not: error };
  if (name !== 'ReplyError') return { lost: error };
  if (NOT_NOW.test(message)) return { not: error };
  if (!message.startsWith('MOVED')) return { wrong: error };
  return { wrong: new Error('This server belongs to a Cluster; give the store `cluster: true`', { cause: error }) };
}

import { setTimeout as wait } from 'node:timers/promises';
import { waitAtMost } from '@whoa/core/internal';
import { StoreBusyError, StoreClosedError } from '../../errors.ts';
import { FORMAT } from '../../rules/format.ts';
import { UnknownOutcomeError } from '../../unknown-outcome.ts';
import type { StoredSettings } from '../driver.ts';
import { adviceOnCertificate } from '../untrusted.ts';
import type { Connection, Reply, Routes, Sent, Subscriber } from './connection/connection.ts';
import { openRoutes } from './connection/routes.ts';
import { computeSlot } from './connection/slot.ts';
import { checkEviction, checkLayout, otherFormat, otherShards } from './layout.ts';
import { LIBRARY, type Library } from './library.ts';
import { OPERATIONS, type Operation, type OperationName } from './operations.ts';
import { PREFIX, type RedisStoreOptions, TIMEOUT_MS, toTag } from './options.ts';
import { adviceOn, parseErrorCode, shouldLeave } from './replies/refusals.ts';
import { LAST_MS, removeOtherLibraries, runOperation } from './run-operation.ts';

const RETRY_DELAY_MS = 20;
/** A Cluster node that is unreachable for this long may have been replaced: the other nodes are asked. */
const READY_WAIT_MS = 200;

type Values = readonly (string | number)[];

/** A request to the server of a shard. */
interface Ask {
  readonly name: string;
  /** Sending it twice is the same as once, so a lost response does not matter. */
  readonly isRepeatable: boolean;
  readonly tag: string;
  send(connection: Connection, ms: number): Promise<Sent>;
}

/** What the store holds for all its clients. */
interface SharedSettings {
  /** What this client asks it to hold. */
  readonly given: StoredSettings;
  /** Gets what it holds, before the first request is sent. */
  use(held: StoredSettings): void;
}

/** The result of one attempt: a reply, or why to try again. */
type CallAttempt =
  | { readonly reply: Reply; readonly on: Connection }
  | { readonly again: Error | undefined; readonly isLost?: boolean; readonly isAtOnce?: boolean };

/** Sends operations to the server of their shard, and reports exactly what is known about their outcome. */
export class Calls implements AsyncDisposable {
  readonly #options: RedisStoreOptions;
  readonly #library: Library;
  readonly #settings: SharedSettings;
  readonly #timeoutMs: number;
  readonly #slots = new Map<string, number>();
  #opening: Promise<Routes> | undefined;
  #routes: Routes | undefined;
  #isLaidOut = false;
  /** As found on connecting. Shards that are still empty get it. */
  #format = FORMAT;
  #closed = false;

  constructor(options: RedisStoreOptions, settings: SharedSettings, library: Library = LIBRARY) {
    this.#options = options;
    this.#library = library;
    this.#settings = settings;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  }

  /** Runs an operation on the shard whose keys start with `tag`. Its values are asked for once the layout is known. */
  async call(name: OperationName, tag: string, values: (format: number) => Values): Promise<Reply> {
    const send = (connection: Connection, ms: number): Promise<Sent> =>
      this.#run(connection, { name, values: [tag, ...values(this.#format)] }, ms);
    const { as = name }: Operation = OPERATIONS[name];
    return (await this.#retryLostResponse({ name: as, isRepeatable: isRepeatable(name), tag, send })).reply;
  }

  /** Subscribes to a channel of a shard. Returns the connection of the subscription. */
  async subscribe(tag: string, channel: string, subscriber: Subscriber): Promise<Connection> {
    const send = async ({ listener }: Connection, ms: number): Promise<Sent> => {
      listener.subscriber = subscriber;
      const until = performance.now() + ms;
      if (!listener.isReady && !(await listener.waitForReady(ms))) return { unsent: listener.lastError };
      return listener.send((client) => client.ssubscribe(channel), until - performance.now());
    };
    return (await this.#retryLostResponse({ name: 'watch', isRepeatable: true, tag, send })).on.listener;
  }

  /** Removes the functions of other versions from the server of a shard. */
  async removeOtherLibraries(tag: string): Promise<void> {
    const send = (connection: Connection, ms: number): Promise<Sent> =>
      removeOtherLibraries(connection, this.#library, ms);
    await this.#retryLostResponse({ name: 'migrate', isRepeatable: true, tag, send });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    (await this.#opening?.catch(() => undefined))?.close();
  }

  async #retryLostResponse(ask: Ask): Promise<{ reply: Reply; on: Connection }> {
    const until = performance.now() + this.#timeoutMs;
    let why: Error | undefined;
    for (let tries = 0; ; tries++) {
      if (this.#closed) throw new StoreClosedError();
      const tried = await this.#try(ask, until);
      if ('reply' in tried) return tried;
      if (tried.isLost && !ask.isRepeatable) throw new UnknownOutcomeError(ask.name, { cause: tried.again });
      why = tried.again ?? why;
      // Don't start what cannot end in time: its outcome would be unknown for no reason.
      if (until - performance.now() < LAST_MS) throw this.#busy(ask, why);
      if (!tried.isAtOnce || tries > 0) await wait(RETRY_DELAY_MS);
    }
  }

  async #try(ask: Ask, until: number): Promise<CallAttempt> {
    const routes = this.#routes ?? (await this.#open());
    const connection = routes.at(this.#getSlot(ask.tag));
    if (connection === undefined) {
      await waitAtMost(routes.refreshed(), until - performance.now());
      return { again: undefined, isAtOnce: true };
    }
    const readyWaitMs = Math.min(
      until - performance.now(),
      this.#options.cluster ? READY_WAIT_MS : Number.POSITIVE_INFINITY,
    );
    if (!connection.isReady && !(await connection.waitForReady(readyWaitMs))) {
      routes.refresh();
      return { again: connection.lastError };
    }
    if (!connection.isAdmitted) {
      const failed = await this.#admit(connection, ask);
      // The operation itself has not been sent, so its outcome is known.
      if (failed !== undefined && 'lost' in failed) return { again: failed.lost };
      if (failed !== undefined) return this.#classifyReply(failed, { ask, routes, connection });
    }
    // Don't send what cannot be answered in time: its outcome would be unknown for no reason.
    if (until - performance.now() < LAST_MS) return { again: undefined };
    const sent = await ask.send(connection, until - performance.now());
    return this.#classifyReply(sent, { ask, routes, connection });
  }

  #classifyReply(
    sent: Sent,
    { ask, routes, connection }: { ask: Ask; routes: Routes; connection: Connection },
  ): CallAttempt {
    if ('reply' in sent) return { reply: sent.reply, on: connection };
    if ('lost' in sent) return { again: sent.lost, isLost: true };
    if ('unsent' in sent) return { again: sent.unsent };
    const { refused } = sent;
    if (refused instanceof UnknownOutcomeError) throw refused;
    if (parseErrorCode(refused) === 'MOVED') {
      if (!this.#options.cluster) {
        throw new Error('This server belongs to a Cluster; set `cluster: true` for the store', { cause: refused });
      }
      const [, , address] = refused.message.split(' ');
      routes.move(this.#getSlot(ask.tag), address!, connection);
      routes.refresh();
      return { again: refused, isAtOnce: true };
    }
    const found = refused.message.split(' ')[1] ?? '';
    if (parseErrorCode(refused) === 'OTHERFORMAT') throw otherFormat(found, this.#options.prefix ?? PREFIX);
    if (parseErrorCode(refused) === 'OTHERSHARDS') throw otherShards(found, this.#options.prefix ?? PREFIX);
    if (adviceOn(refused) === undefined) throw refused;
    if (parseErrorCode(refused) === 'CLUSTERDOWN') routes.refresh();
    if (!this.#options.cluster && shouldLeave(refused, this.#options.sentinel !== undefined)) {
      connection.leave();
    }
    return { again: refused };
  }

  #run(connection: Connection, { name, values }: { name: OperationName; values: Values }, ms: number): Promise<Sent> {
    const copies = isRepeatable(name) ? 0 : (this.#options.replicas?.atLeast ?? 0);
    return runOperation(connection, { library: this.#library, name, values, copies }, ms);
  }

  /** Checks a server before it is used. Returns a transport failure, if any; throws if the server must not be used. */
  async #admit(connection: Connection, ask: Ask): Promise<Sent | undefined> {
    const first = this.#firstTag;
    if (ask.tag !== first && !this.#isLaidOut) {
      const send = (): Promise<Sent> => Promise.resolve({ reply: null });
      await this.#retryLostResponse({ name: 'connect', isRepeatable: true, tag: first, send });
    }
    const { generation } = connection;
    const admission = (connection.admission ??= this.#check(connection, first));
    let isAdmitted = false;
    try {
      const failed = await admission;
      isAdmitted = failed === undefined && connection.generation === generation;
      return failed;
    } finally {
      connection.isAdmitted = isAdmitted;
      // Check again next time: an operator may have fixed the problem.
      if (!isAdmitted && connection.admission === admission) connection.admission = undefined;
    }
  }

  async #check(connection: Connection, first: string): Promise<Sent | undefined> {
    const evicts = await checkEviction(connection);
    if (evicts !== undefined || this.#routes?.at(this.#getSlot(first)) !== connection) return evicts?.failed;
    const checked = await checkLayout(
      (name, values) => this.#run(connection, { name, values: [first, 0, 0, 0, '', ...values] }, this.#timeoutMs),
      this.#options,
      this.#settings.given,
    );
    if ('failed' in checked) return checked.failed;
    this.#format = checked.format;
    this.#settings.use(checked.settings);
    this.#isLaidOut = true;
    return undefined;
  }

  #busy({ name }: Ask, cause: Error | undefined): StoreBusyError {
    const message = cause?.message || 'no connection';
    const refused = cause && adviceOn(cause);
    const advice = refused ?? adviceOnCertificate(cause, '`tls: { ca }` of the store');
    const words = `${message}; ${advice ?? 'check that it runs and that the url is right'}`;
    const failed = refused === undefined ? 'cannot be reached' : `could not carry out '${name}'`;
    return new StoreBusyError(
      `Redis ${failed} within ${this.#timeoutMs} ms (${words}); nothing was changed, try again`,
      { cause },
    );
  }

  get #firstTag(): string {
    return toTag(this.#options.prefix ?? PREFIX, 0);
  }

  async #open(): Promise<Routes> {
    this.#opening ??= openRoutes(this.#options);
    this.#routes = await this.#opening;
    return this.#routes;
  }

  #getSlot(tag: string): number {
    let slot = this.#slots.get(tag);
    if (slot === undefined) this.#slots.set(tag, (slot = computeSlot(tag)));
    return slot;
  }
}

function isRepeatable(name: OperationName): boolean {
  const operation: Operation = OPERATIONS[name];
  return operation.mode === 'reads' || operation.isRepeatable === true;
}

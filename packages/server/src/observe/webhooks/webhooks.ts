import { hash } from 'node:crypto';
import type { LookupFunction } from 'node:net';
import { SettingsError } from '@whoa/core';
import { systemWorld, type World } from '@whoa/core/embed';
import { reportFailure, settings } from '@whoa/core/internal';
import { createRunner, type Runner, type TaskContext, type TaskHandler, type TaskStore } from '@whoa/tasks';
import { FeedConsumer, type FeedEvent } from '@whoa/tasks/internal';
import {
  type Change,
  ENDS,
  lookAround,
  PAUSE_EVENTS,
  QUESTION_EVENTS,
  toChange,
  toKinds,
  type WebhookEvent,
} from './changes.ts';
import { post } from './post.ts';
import { PrivateAddressError } from './public-address.ts';
import { readSecrets, signatureHeaders } from './signature.ts';

/** Where to report ended tasks, and questions. */
export interface Webhook {
  /** `https://…`. `http://…` only with `allowPrivateAddresses`. */
  readonly url: string;
  /** Signs what is sent: `whsec_` and 24 to 64 bytes in base64. While you replace it, a list of the new and the old one. */
  readonly secret: string | readonly string[];
  /** What is reported. Defaults to all ends of tasks, and no questions. */
  readonly events?: readonly WebhookEvent[] | undefined;
  /** The host is inside your network. Otherwise it is rejected when its address is not public. */
  readonly allowPrivateAddresses?: boolean | undefined;
}

/** One attempt to deliver a webhook. */
export interface WebhookAttempt {
  readonly url: string;
  readonly taskId: string;
  /** From 1. */
  readonly attempt: number;
  /** `refused`: the address is not public. */
  readonly result: 'delivered' | 'failed' | 'refused';
  /** Why it was not delivered. */
  readonly error?: string;
  /** When the next attempt is made. Without it, this was the last one. */
  readonly nextInMs?: number;
}

/** Options of webhooks. */
interface WebhooksOptions {
  readonly store: TaskStore;
  readonly webhooks: readonly Webhook[];
  /** Called after each attempt. */
  readonly onAttempt?: ((attempt: WebhookAttempt) => unknown) | undefined;
  /** Called when the store failed. The ends that were missed are looked for again. */
  readonly onError?: ((error: unknown) => unknown) | undefined;
  /** Resolves the names of hosts. Defaults to the resolver of the system. */
  readonly lookup?: LookupFunction | undefined;
  readonly world?: World | undefined;
}

/** Reports ended tasks to other services. Dispose it to stop; another process continues. */
export interface Webhooks extends AsyncDisposable {
  /** Starts to watch and to deliver. Resolves once no end can be missed. */
  start(): Promise<void>;
}

/** What is kept in the store about one attempt. */
interface Delivery {
  readonly id: string;
  /** Names the change: the same each time it is found. */
  readonly change: string;
  /** Its task, if there is one. */
  readonly task?: string;
  readonly attempt: number;
  readonly body: string;
}

/** Deliveries are tasks of this tenant. Don't give it to users. */
export const WEBHOOKS_TENANT = 'whoa.webhooks';
const CONCURRENCY = 32;
const TIMEOUT_MS = 15_000;
/** The pauses between attempts, before a random part is added. */
const RETRY_DELAY_MS: readonly number[] = [5_000, 30_000, 120_000, 600_000, 3_600_000, 21_600_000, 86_400_000];
const JITTER = 0.2;
const GONE = 410;

/**
 * Creates webhooks: signed requests that report the end of each task, at least once. Deliveries are tasks of the store,
 * so they survive crashes and any process with the same webhook can make them.
 *
 * @returns The webhooks. Call `start`.
 * @throws {@link SettingsError} when a webhook is not valid. It names the field.
 *
 * @example
 * ```ts
 * import { createWebhooks } from '@whoa/server/webhooks';
 *
 * const secret = process.env['WEBHOOK_SECRET'] ?? '';
 * const webhooks = createWebhooks({ store, webhooks: [{ url: 'https://example.com/ended', secret }] });
 * await webhooks.start();
 * ```
 */
export function createWebhooks(options: WebhooksOptions): Webhooks {
  return new StoreWebhooks(options);
}

class StoreWebhooks implements Webhooks {
  readonly #options: WebhooksOptions;
  readonly #endpoints: readonly Endpoint[];
  readonly #world: World;
  readonly #runner: Runner;
  readonly #consumers: readonly FeedConsumer[];

  constructor(options: WebhooksOptions) {
    const { store, webhooks, world = systemWorld } = options;
    this.#options = options;
    this.#world = world;
    this.#endpoints = webhooks.map((webhook, i) => readWebhook(webhook, `webhooks[${i}]`));
    const onError = (error: unknown): void => this.#call(options.onError, error);
    const agents = this.#endpoints.map((endpoint): [string, TaskHandler] => [
      endpoint.agent,
      (context) => this.#deliver(endpoint, context),
    ]);
    this.#runner = createRunner({
      store,
      world,
      agents: Object.fromEntries(agents),
      hooks: { 'store-error': ({ error }) => onError(error) },
    });
    this.#consumers = this.#endpoints.map((endpoint) => {
      const { agent: consumer, events } = endpoint;
      return new FeedConsumer({
        store,
        consumer,
        kinds: toKinds(events),
        world,
        onEvents: async (found) => void (await Promise.all(found.map((event) => this.#report(endpoint, event)))),
        onGap: (since) => lookAround(store, { since, events, plan: (change) => this.#plan(endpoint, change) }),
        onError,
      });
    });
  }

  async start(): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer.start()));
    await this.#runner.serve({ concurrency: CONCURRENCY });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#consumers.map((consumer) => consumer[Symbol.asyncDispose]()));
    await this.#runner[Symbol.asyncDispose]();
  }

  /** What it is about may be gone: erased, or past its retention. */
  async #report(endpoint: Endpoint, event: FeedEvent): Promise<void> {
    const change = await toChange(this.#options.store, event);
    if (change !== undefined && endpoint.events.includes(change.event)) await this.#plan(endpoint, change);
  }

  /** Stores the delivery of a change. Doing it twice, or in several processes, stores it once. */
  #plan({ agent }: Endpoint, { event: _event, ...change }: Change): Promise<void> {
    return this.#create(agent, { ...change, attempt: 1 });
  }

  async #create(agent: string, delivery: Delivery, inMs = 0): Promise<void> {
    const receipt = await this.#options.store.create({
      tenant: WEBHOOKS_TENANT,
      agent,
      key: `${agent}/${delivery.change}/${delivery.attempt}`,
      input: { ...delivery },
      ...(inMs > 0 && { notBefore: this.#world.clock.now() + inMs }),
    });
    if (receipt.result === 'full') throw new Error(`${receipt.limit} webhooks are queued; the rest will be retried`);
  }

  /** Makes one attempt. If it fails, the next one is stored before this one ends, so a crash loses none. */
  async #deliver(endpoint: Endpoint, { task, token, signal }: TaskContext): Promise<string> {
    // Another tenant could name our agent.
    if (task.tenant !== WEBHOOKS_TENANT) throw new Error(`only tasks of ${WEBHOOKS_TENANT} are webhooks`);
    const stored = task.inputs[0] as unknown as Omit<Delivery, 'change'> & Partial<Delivery>;
    // An older release stored none.
    const delivery = { ...stored, change: stored.change ?? stored.id };
    const { attempt, task: taskId = delivery.id } = delivery;
    const about = { url: endpoint.url.href, taskId, attempt };
    const sent = await this.#send(endpoint, delivery, signal);
    token.throwIfCancelled();
    if ('status' in sent && sent.status >= 200 && sent.status < 300) {
      this.#call(this.#options.onAttempt, { ...about, result: 'delivered' });
      return `delivered: ${sent.status}`;
    }
    const error = 'status' in sent ? `the response was ${sent.status}` : sent.error.message;
    const pause = 'status' in sent && sent.status === GONE ? undefined : RETRY_DELAY_MS[attempt - 1];
    const nextInMs = pause === undefined ? undefined : Math.round(pause * (1 + JITTER * this.#world.random()));
    if (nextInMs !== undefined) await this.#create(endpoint.agent, { ...delivery, attempt: attempt + 1 }, nextInMs);
    const result = 'error' in sent && sent.error instanceof PrivateAddressError ? 'refused' : 'failed';
    this.#call(this.#options.onAttempt, { ...about, result, error, ...(nextInMs !== undefined && { nextInMs }) });
    throw new Error(`attempt ${attempt}: ${error}`);
  }

  async #send(
    { url, secrets, allowPrivateAddresses }: Endpoint,
    { id, body }: Delivery,
    signal: AbortSignal,
  ): Promise<{ readonly status: number } | { readonly error: Error }> {
    const { clock } = this.#world;
    const timestamp = Math.floor((clock.wallNow?.() ?? clock.now()) / 1_000);
    const headers = {
      'content-type': 'application/json',
      'user-agent': 'whoa-webhooks',
      ...signatureHeaders({ id, timestamp, body }, secrets),
    };
    const { lookup } = this.#options;
    try {
      const sending = { url, headers, body, allowPrivateAddresses, timeoutMs: TIMEOUT_MS, clock, signal, lookup };
      return { status: await post(sending) };
    } catch (error) {
      return { error: error as Error };
    }
  }

  /** A listener that fails affects nothing else. */
  #call<T>(listener: ((value: T) => unknown) | undefined, value: T): void {
    try {
      listener?.(value);
    } catch (error) {
      reportFailure(undefined, 'webhooks', error);
    }
  }
}

/** A checked webhook. */
interface Endpoint {
  readonly url: URL;
  /** The name of its deliveries' agent: only processes that have this webhook take them. */
  readonly agent: string;
  readonly secrets: readonly Buffer[];
  readonly events: readonly WebhookEvent[];
  readonly allowPrivateAddresses: boolean;
}

function readWebhook(webhook: Webhook, within: string): Endpoint {
  const rules: settings.Rules<Webhook> = {
    url: settings.required(settings.nonEmptyText),
    secret: settings.required(settings.anything),
    events: settings.listOf(settings.oneOf(...ENDS, ...QUESTION_EVENTS, ...PAUSE_EVENTS)),
    allowPrivateAddresses: settings.flag,
  };
  const given = settings.readSettings<Webhook>(webhook, rules, { within });
  const { events = ENDS, allowPrivateAddresses = false } = given;
  const url = URL.canParse(given.url) ? new URL(given.url) : undefined;
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && allowPrivateAddresses);
  if (url === undefined || !isSafe)
    throw new SettingsError(`${within}.url`, 'expected https://…, or http://… with allowPrivateAddresses');
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw new SettingsError(`${within}.url`, 'expected a URL without a user, a password or a fragment');
  const secrets = readSecrets(given.secret, `${within}.secret`);
  const agent = `whoa.webhook.${hash('sha256', url.href).slice(0, 16)}`;
  return { url, agent, secrets, events, allowPrivateAddresses };
}

import type { JSONRPCMessage, MessageExtraInfo, RequestId, Transport } from '@modelcontextprotocol/server';
import { fieldsOf } from '../host.ts';
import { INTERNAL } from '../task-requests.ts';
import {
  ACKNOWLEDGED,
  type ListenParts,
  type ListenRequest,
  listenToTasks,
  readListenRequest,
  refuseListening,
  SUBSCRIPTION,
  type TaskListening,
} from './listen-request.ts';

const CANCELLED = 'notifications/cancelled';

/**
 * A transport that adds tasks to `subscriptions/listen`. The library checks and acknowledges a request without them; then
 * the acknowledgement is completed, and the changes of the tasks follow it.
 */
export class ListeningTransport implements Transport {
  readonly #inner: Transport;
  readonly #parts: ListenParts;
  /** Requests that the library has not acknowledged yet. */
  readonly #asked = new Map<RequestId, ListenRequest>();
  readonly #listening = new Map<RequestId, TaskListening>();
  /** Tasks that are still being left. */
  readonly #leaving = new Set<Promise<unknown>>();
  #isOver = false;
  onmessage?: Transport['onmessage'];
  onclose?: Transport['onclose'];
  onerror?: Transport['onerror'];

  constructor(inner: Transport, parts: ListenParts) {
    this.#inner = inner;
    this.#parts = parts;
  }

  start(): Promise<void> {
    this.#inner.onmessage = (message, extra) => this.#receive(message, extra);
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onclose = () => {
      this.#leaveAll();
      this.onclose?.();
    };
    return this.#inner.start();
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { id, method, params } = fieldsOf(message);
    const subscription = fieldsOf(fieldsOf(params)['_meta'])[SUBSCRIPTION] as RequestId;
    const asked = method === ACKNOWLEDGED ? this.#asked.get(subscription) : undefined;
    if (asked !== undefined) return this.#acknowledge(asked);
    // A response to a request to listen is its refusal, or its end.
    if (method === undefined) this.#asked.delete(id as RequestId);
    const sent = this.#inner.send(message);
    if (!this.#isOver) return sent;
    // Don't wait: a host that no longer reads would keep the connection open.
    sent.catch(this.#parts.onError);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  /** Ends all listening, also that of a host that does not read. Call it before the connection is closed. */
  async leave(): Promise<void> {
    this.#leaveAll();
    await Promise.all(this.#leaving);
  }

  #receive(message: JSONRPCMessage, extra?: MessageExtraInfo): void {
    const request = readListenRequest(message);
    if (request !== undefined && !request.hasTasks) {
      this.#inner.send(refuseListening(request)).catch(this.#parts.onError);
      return;
    }
    if (request !== undefined) this.#asked.set(request.id, request);
    const { method, params } = fieldsOf(message);
    if (method === CANCELLED) this.#leave(fieldsOf(params)['requestId'] as RequestId);
    this.onmessage?.(message, extra);
  }

  async #acknowledge(asked: ListenRequest): Promise<void> {
    const { id } = asked;
    try {
      const listening = await listenToTasks(asked, this.#parts);
      await this.#inner.send(listening.acknowledgement);
      // The host may have left meanwhile, or asked again with the same id.
      if (this.#isOver || this.#asked.get(id) !== asked) return void (await listening.changes.return!());
      this.#leave(id);
      this.#listening.set(id, listening);
      this.#pass(id, listening).catch(this.#parts.onError);
    } catch (error) {
      this.#parts.onError(error);
      this.#forget(id);
      const message = 'The tasks could not be read; try again';
      await this.#inner.send({ jsonrpc: '2.0', id, error: { code: INTERNAL, message } });
    }
  }

  /** Sends each change when the host has read the one before. */
  async #pass(id: RequestId, listening: TaskListening): Promise<void> {
    const { changes, end } = listening;
    try {
      for (let next = await changes.next(); next.value !== undefined; next = await changes.next()) {
        if (this.#listening.get(id) !== listening) return;
        await this.#inner.send(next.value);
      }
      if (this.#listening.get(id) !== listening) return;
      this.#forget(id);
      await this.#inner.send(end);
    } finally {
      if (this.#listening.get(id) === listening) this.#listening.delete(id);
      await changes.return!();
    }
  }

  /** Makes the library forget a request, or it would end it once more. */
  #forget(id: RequestId): void {
    this.onmessage?.({ jsonrpc: '2.0', method: CANCELLED, params: { requestId: id } });
  }

  #leave(id: RequestId): void {
    const listening = this.#listening.get(id);
    this.#asked.delete(id);
    this.#listening.delete(id);
    if (listening === undefined) return;
    const left = listening.changes.return!().finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }

  #leaveAll(): void {
    this.#isOver = true;
    for (const id of this.#listening.keys()) this.#leave(id);
  }
}

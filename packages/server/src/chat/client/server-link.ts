/** The header in which the server names who sends a request. A command carries it, and is taken from no one else. */
export const PRINCIPAL = 'whoa-principal';

/** A refusal of the server. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly statusCode: number;
  /** When the server may take the request, if it is temporary. */
  readonly retryAfterMs: number | undefined;

  constructor(statusCode: number, message: string, retryAfterMs?: number) {
    super(message);
    this.statusCode = statusCode;
    this.retryAfterMs = retryAfterMs;
  }
}

type Fetch = typeof globalThis.fetch;

interface OpenCall {
  readonly chatId: string;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** The requests of a page. Notes which principal the server names in each chat. */
export class ServerLink {
  readonly #calls = new WeakMap<AbortSignal, OpenCall>();
  readonly #principals = new Map<string, string>();
  readonly #given: Fetch | undefined;

  constructor(given: Fetch | undefined) {
    this.#given = given;
  }

  /** Who uses a chat in this page. The first answer of the server counts until the chat is opened again. */
  principal(chatId: string): string | undefined {
    return this.#principals.get(chatId);
  }

  forget(chatId: string): void {
    this.#principals.delete(chatId);
  }

  /** Begins a request, which `fetch` knows by its signal. Its response must begin in time; an abort later ends the reading. */
  call(chatId: string, timeoutMs: number, given?: AbortSignal | null): AbortController {
    given?.throwIfAborted();
    const limit = new AbortController();
    const late = (): void => limit.abort(new DOMException('Timeout', 'TimeoutError'));
    this.#calls.set(limit.signal, { chatId, timer: setTimeout(late, timeoutMs) });
    given?.addEventListener('abort', () => limit.abort(given.reason), { once: true });
    return limit;
  }

  /** A login page, or a network that wants to be logged in to, answers too: only a response of a chat is one. */
  readonly fetch: Fetch = async (url, init) => {
    const call = init?.signal ? this.#calls.get(init.signal) : undefined;
    try {
      const response = await (this.#given ?? globalThis.fetch)(url, init);
      const retryS = Number(response.headers.get('retry-after') ?? Number.NaN);
      if (!response.ok && retryS >= 0) throw new RefusedError(response.status, await response.text(), retryS * 1_000);
      const type = response.headers.get('content-type') ?? '';
      const isAnswer = !response.ok || response.status === 204 || /json|event-stream/.test(type);
      if (!isAnswer) throw new TypeError(`network error: '${type}' is not from a chat`);
      const principal = response.headers.get(PRINCIPAL);
      if (call && principal && !this.#principals.has(call.chatId)) this.#principals.set(call.chatId, principal);
      return response;
    } finally {
      clearTimeout(call?.timer);
    }
  };
}

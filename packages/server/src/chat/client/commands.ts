import type { UIMessage, UIMessageChunk } from 'ai';
import type { ApprovalReply, StopOptions, StopReceipt } from './chat-stop.ts';
import { type Command, type CommandKind, isStop } from './command.ts';
import { Outbox, type Settled } from './outbox.ts';
import type { Sent } from './pending-messages.ts';
import { PRINCIPAL, RefusedError, type ServerLink } from './server-link.ts';
import { findAnswered } from './waiting-message.ts';

type Chunks = ReadableStream<UIMessageChunk>;
type Given = Record<string, string> | Headers | undefined;

/** What belongs to a command, and is not kept over a reload. */
interface Live {
  readonly headers: Given;
  readonly abortSignal: AbortSignal | undefined;
}

/** How a transport reaches the server. */
export interface CommandParts<Message extends UIMessage> {
  readonly api: string;
  readonly link: ServerLink;
  readonly headers: () => Promise<Given>;
  readonly credentials: () => Promise<RequestInit['credentials']>;
  readonly sendMessages: (
    sent: Sent<Message> & { readonly chatId: string; readonly headers: object; readonly abortSignal: AbortSignal },
  ) => Promise<Chunks>;
  readonly onChange: () => void;
  readonly onSettled: (settled: Settled) => void;
}

/** What to stop: a run or a message, or what the chat left running. */
interface StopRequest extends StopOptions {
  readonly runId?: string | undefined;
  readonly messageId?: string | undefined;
}

interface ReadVersion {
  version?: string | undefined;
  readonly reply?: string;
}

interface Post {
  readonly body: unknown;
  readonly headers: object;
  readonly timeoutMs: number;
  readonly keepalive: boolean;
}

/** How long the response to a stop may take to begin, while another request of it may take longer. */
const STOP_MS = 5_000;
/** The response to anything else: a rollback waits for the calls that must finish. */
export const RESPONSE_MS = 30_000;

/** The messages of a chat, which are read again after a lost response: nothing else may wait for it. */
const READ_MS = 10_000;

const VERSION = 'whoa-version';

/** `crypto.randomUUID` is missing where the page came over plain HTTP. */
const createId = (): string => crypto.getRandomValues(new Uint32Array(4)).join('-');

/** What a page says to the server, and asks it. */
export class Commands<Message extends UIMessage> {
  readonly outbox: Outbox;
  readonly #parts: CommandParts<Message>;
  readonly #live = new Map<string, Live>();
  /** The answers that were sent, by question or call. */
  readonly #answered = new Set<string>();
  /** What the server had when each chat was read last: its version, and the message of the reply in progress. */
  readonly #versions = new Map<string, ReadVersion>();
  /** Counts what may change the messages of a chat. */
  #changes = 0;

  constructor(parts: CommandParts<Message>) {
    this.#parts = parts;
    this.outbox = new Outbox({
      name: parts.api,
      send: (command, keepalive, isPatient) => this.#send(command, keepalive, isPatient),
      onChange: parts.onChange,
      onSettled: (settled) => this.#settle(settled),
    });
  }

  /** Sends a message, answers to calls, or asks for another reply. The id names the run. */
  send(chatId: string, sent: Sent<Message>, live?: Live): { readonly id: string; readonly stream: Promise<Chunks> } {
    const id = createId();
    if (live) this.#live.set(id, live);
    return { id, stream: this.#add(chatId, findKind(sent), { body: sent, id }) as Promise<Chunks> };
  }

  /** Whether all that a message says about its calls was sent. */
  isSent(message: Message): boolean {
    return findAnswered(message).every((answer) => this.#answered.has(answer));
  }

  /** Something has begun or ended that may change the messages of a chat. */
  noteChange(): void {
    this.#changes++;
  }

  approve(chatId: string, approval: ApprovalReply): Promise<unknown> {
    return this.#add(chatId, 'answer', { body: { approval } });
  }

  /** Never rejects. */
  async stop(chatId: string, stop: StopRequest): Promise<StopReceipt<Message>> {
    try {
      const kind = stop.rollback ? 'rollback' : 'stop';
      return (await this.#add(chatId, kind, { body: stop })) as StopReceipt<Message>;
    } catch (error) {
      return { result: error instanceof DOMException ? 'given-up' : 'refused' };
    }
  }

  /** What the page has read of a chat. Without a version it is not all that it shows. */
  version(chatId: string): ReadVersion {
    return this.#versions.get(chatId) ?? {};
  }

  async readMessages(chatId: string): Promise<Message[]> {
    for (;;) {
      const changes = this.#changes;
      const response = await this.request(chatId, 'messages', { timeoutMs: READ_MS });
      const principal = this.#parts.link.principal(chatId);
      const isOther = (response.headers.get(PRINCIPAL) ?? principal) !== principal;
      if (!response.ok || isOther) throw new RefusedError(response.status, 'The chat could not be fetched');
      const messages = (await response.json()) as Message[];
      const [version, reply = ''] = response.headers.get(VERSION)?.split(' ') ?? [];
      this.#versions.set(chatId, { version, reply: decodeURIComponent(reply) });
      // What was acknowledged, or has ended, in between may be missing.
      if (changes === this.#changes) return messages;
    }
  }

  async request(
    chatId: string,
    path: string,
    { timeoutMs = RESPONSE_MS, ...init }: RequestInit & { timeoutMs?: number | undefined } = {},
  ): Promise<Response> {
    const { api, link, headers, credentials } = this.#parts;
    const own = new Headers(await headers());
    return link.fetch(`${api}/${encodeURIComponent(chatId)}/${path}`, {
      ...init,
      signal: link.call(chatId, timeoutMs, init.signal).signal,
      headers: Object.fromEntries([...own, ...new Headers(init.headers)]),
      credentials: (await credentials()) ?? 'same-origin',
    });
  }

  #add(chatId: string, kind: CommandKind, { body, id = createId() }: { body: object; id?: string }): Promise<unknown> {
    const command: Command = { id, kind, chatId, body, principal: this.#parts.link.principal(chatId) };
    for (const answer of findSentAnswers<Message>(command)) this.#answered.add(answer);
    this.#changes++;
    return this.outbox.add(command);
  }

  #settle(settled: Settled): void {
    const { command } = settled;
    this.#changes++;
    this.#live.delete(command.id);
    if ('error' in settled) for (const answer of findSentAnswers<Message>(command)) this.#answered.delete(answer);
    this.#parts.onSettled(settled);
  }

  /** Sends a command once. */
  #send(command: Command, keepalive: boolean, isPatient: boolean): Promise<unknown> {
    const { kind, chatId, body, principal } = command;
    const headers = principal === undefined ? {} : { [PRINCIPAL]: principal };
    if ('approval' in body)
      return this.#post(chatId, 'approve', { body: body.approval, headers, timeoutMs: RESPONSE_MS, keepalive });
    if (!isStop(command)) return this.#stream(command, headers);
    const timeoutMs = kind === 'stop' && !isPatient ? STOP_MS : RESPONSE_MS;
    return this.#post(chatId, 'stop', { body, headers, timeoutMs, keepalive });
  }

  async #stream({ id, chatId, body }: Command, headers: object): Promise<Chunks> {
    const sent = body as Sent<Message>;
    const live = this.#live.get(id);
    const call = this.#parts.link.call(chatId, RESPONSE_MS);
    const stream = await this.#parts.sendMessages({
      ...sent,
      chatId,
      body: { ...sent.body, runId: id },
      headers: { ...Object.fromEntries(new Headers(live?.headers)), ...headers },
      abortSignal: call.signal,
    });
    const signal = live?.abortSignal;
    signal?.addEventListener('abort', () => call.abort(signal.reason), { once: true });
    // No one reads it: the page was loaded again, has left, or has given up.
    if (live === undefined || signal?.aborted || !this.outbox.has(id)) await stream.cancel().catch(() => {});
    return stream;
  }

  async #post(chatId: string, path: 'stop' | 'approve', { body, headers, ...init }: Post): Promise<unknown> {
    const response = await this.request(chatId, path, {
      method: 'POST',
      // Before others that wait.
      ...({ priority: 'high' } as object),
      ...init,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    // A rollback that is rejected has stopped the reply.
    if (response.ok || (response.status === 409 && path === 'stop')) return response.json();
    throw new RefusedError(response.status, await response.text());
  }
}

function findKind<Message extends UIMessage>({ messages, trigger, messageId }: Sent<Message>): CommandKind {
  if (trigger === 'regenerate-message') return 'regenerate';
  const message = messages.find(({ id, role }) => id === messageId && role === 'assistant') ?? messages.at(-1)!;
  if (message.role !== 'assistant') return 'send';
  return message.parts.some((part) => 'state' in part && part.state === 'approval-responded') ? 'answer' : 'output';
}

function findSentAnswers<Message extends UIMessage>({ kind, body }: Command): readonly string[] {
  const { messages = [] } = body as Partial<Sent<Message>>;
  return kind === 'answer' || kind === 'output' ? messages.flatMap((message) => findAnswered(message)) : [];
}

import { finished } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { ServerCommand, ServerProcess, StartServer } from './server-process.ts';

/** A longer message is taken for a fault: it would have to be held in memory whole. */
const MAX_MESSAGE_CHARS = 64_000_000;
const LAST_WORDS_CHARS = 1_000;
/** How long a server that no longer listens has to end by itself. */
const GOING_MS = 500;

/** Speaks with a server over its standard input and output, one JSON message per line, and ends it when closed. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #command: ServerCommand;
  readonly #startServer: StartServer;
  #process: ServerProcess | undefined;
  #rest = '';
  #lastWords = '';
  #end: string | undefined;
  #closed = false;

  constructor(command: ServerCommand, startServer: StartServer) {
    this.#command = command;
    this.#startServer = startServer;
  }

  /** How the server ended, and the last it said; `undefined` while it runs. */
  get end(): string | undefined {
    if (this.#end === undefined) return undefined;
    const words = this.#lastWords.trim();
    return words === '' ? this.#end : `${this.#end}; it last said: ${words}`;
  }

  async start(): Promise<void> {
    const server = await this.#startServer(this.#command);
    this.#process = server;
    // Closed while it started: nobody will ask for its end any more.
    if (this.#closed) {
      await server.end();
      throw new Error('The server was closed while it started');
    }
    const decoder = new StringDecoder('utf8');
    server.stdout.on('data', (chunk: Buffer) => this.#read(decoder.write(chunk)));
    server.stderr.on('data', (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString()).slice(-LAST_WORDS_CHARS);
    });
    // What a crashed server had started goes with it, and one that no longer speaks is as good as gone.
    const hangUp = (): void => {
      this.close().catch((error: unknown) => this.#complain(error));
    };
    server.stdout.once('close', hangUp);
    server.ended.then(hangUp, hangUp);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const server = this.#process;
    if (server === undefined || this.#end !== undefined) throw new Error(`The server has ended (${this.#end})`);
    try {
      await new Promise<void>((resolve, reject) => {
        server.stdin.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      });
    } catch (error) {
      await this.#waitForEnd(server);
      throw error;
    }
  }

  /** A server that no longer listens is about to end: how it does, and what it says, tells more than that. */
  async #waitForEnd(server: ServerProcess): Promise<void> {
    const tooLate = new AbortController();
    const wait = sleep(GOING_MS, undefined, { signal: tooLate.signal });
    const heard = finished(server.stderr).catch(() => {});
    await Promise.race([Promise.all([server.ended, heard]), wait]);
    tooLate.abort();
    await wait.catch(() => {});
    this.#end ??= await Promise.race([server.ended, Promise.resolve(undefined)]);
  }

  async close(): Promise<void> {
    const server = this.#process;
    const left = (await server?.end()) ?? 0;
    if (left === 0) this.#end ??= await server?.ended;
    if (this.#closed) return;
    this.#closed = true;
    if (left > 0) this.#complain(new Error(`${left} processes of the server could not be ended`));
    this.onclose?.();
  }

  #read(text: string): void {
    // Only what is new is searched: a long message comes in many pieces.
    const [first = '', ...more] = text.split('\n');
    this.#rest += first;
    for (const line of more) {
      this.#receive(this.#rest);
      this.#rest = line;
    }
    if (this.#rest.length > MAX_MESSAGE_CHARS) {
      this.#end ??= `it sent a message of more than ${MAX_MESSAGE_CHARS} characters`;
      this.close().catch((failure: unknown) => this.#complain(failure));
    }
  }

  #receive(line: string): void {
    if (line.trim() === '') return;
    try {
      this.onmessage?.(withResult(JSON.parse(line) as JSONRPCMessage));
    } catch (error) {
      // Many servers print to the wrong stream; the next line may be a message again.
      this.#complain(error);
    }
  }

  #complain(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }
}

/** An answer whose result is none would be dropped, and its call would wait out its time. */
function withResult(message: JSONRPCMessage): JSONRPCMessage {
  const { id, result } = message as { id?: unknown; result?: unknown };
  const isAnswer = id !== undefined && message !== null && 'result' in message;
  if (!isAnswer || (typeof result === 'object' && result !== null)) return message;
  // A result that no schema accepts: then the call ends, as with any other answer that is none.
  return { ...message, result: { content: 'none' } } as JSONRPCMessage;
}

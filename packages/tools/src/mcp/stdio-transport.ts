import { finished } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as sleep } from 'node:timers/promises';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { ServerCommand, ServerProcess, StartServer } from './server-process.ts';

/** Longer messages are errors, because a message must be held in memory. */
const MAX_MESSAGE_CHARS = 64_000_000;
const LAST_WORDS_CHARS = 1_000;
/** How long a server that closed its input has to exit by itself. */
const EXIT_GRACE_MS = 500;

/** Connects to a server over standard input and output, one JSON message per line. Closing it ends the server. */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #command: ServerCommand;
  readonly #startServer: StartServer;
  #process: ServerProcess | undefined;
  #rest = '';
  #isRefused = false;
  #lastWords = '';
  #end: string | undefined;
  #closed = false;

  constructor(command: ServerCommand, startServer: StartServer) {
    this.#command = command;
    this.#startServer = startServer;
  }

  /** How the server ended, and its last output; `undefined` while it runs. */
  get end(): string | undefined {
    if (this.#end === undefined) return undefined;
    const words = this.#lastWords.trim();
    return words === '' ? this.#end : `${this.#end}; it last said: ${words}`;
  }

  async start(): Promise<void> {
    const server = await this.#startServer(this.#command);
    this.#process = server;
    // It was closed while it started, so end it here.
    if (this.#closed) {
      await server.end();
      throw new Error('The server was closed while it started');
    }
    const decoder = new StringDecoder('utf8');
    server.stdout.on('data', (chunk: Buffer) => this.#read(decoder.write(chunk)));
    server.stderr.on('data', (chunk: Buffer) => {
      this.#lastWords = (this.#lastWords + chunk.toString()).slice(-LAST_WORDS_CHARS);
    });
    // End the processes of a crashed server too. A server that closed its output counts as ended.
    const closeConnection = (): void => {
      this.close().catch((error: unknown) => this.#printError(error));
    };
    server.stdout.once('close', closeConnection);
    server.ended.then(closeConnection, closeConnection);
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

  /** A server that closed its input is about to exit. Wait, because its exit status and output explain more. */
  async #waitForEnd(server: ServerProcess): Promise<void> {
    const tooLate = new AbortController();
    const wait = sleep(EXIT_GRACE_MS, undefined, { signal: tooLate.signal });
    const stderrEnded = finished(server.stderr).catch(() => {});
    await Promise.race([Promise.all([server.ended, stderrEnded]), wait]);
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
    if (left > 0) this.#printError(new Error(`${left} processes of the server could not be ended`));
    this.onclose?.();
  }

  #read(text: string): void {
    if (this.#isRefused) return;
    // Search only the new text: a long message arrives in many chunks.
    const [first = '', ...more] = text.split('\n');
    this.#rest += first;
    for (const line of more) {
      if (this.#rest.length > MAX_MESSAGE_CHARS) break;
      this.#receive(this.#rest);
      this.#rest = line;
    }
    if (this.#rest.length <= MAX_MESSAGE_CHARS) return;
    this.#isRefused = true;
    this.#rest = '';
    this.#end ??= `it sent a message of more than ${MAX_MESSAGE_CHARS} characters`;
    this.close().catch((failure: unknown) => this.#printError(failure));
  }

  #receive(line: string): void {
    if (line.trim() === '') return;
    try {
      this.onmessage?.(withResult(JSON.parse(line) as JSONRPCMessage));
    } catch (error) {
      // Many servers print logs to standard output. The next line may be a message again.
      this.#printError(error);
    }
  }

  #printError(error: unknown): void {
    this.onerror?.(error instanceof Error ? error : new Error(String(error)));
  }
}

/** The library drops a response whose result is not an object, and its call would time out. */
function withResult(message: JSONRPCMessage): JSONRPCMessage {
  const { id, result } = message as { id?: unknown; result?: unknown };
  const isAnswer = id !== undefined && message !== null && 'result' in message;
  if (!isAnswer || (typeof result === 'object' && result !== null)) return message;
  // Use a result that no schema accepts, so that the call fails like with any other invalid response.
  return { ...message, result: { content: 'none' } } as JSONRPCMessage;
}

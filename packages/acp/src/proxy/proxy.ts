import type { Writable } from 'node:stream';
import { waitAtMost } from '@whoa/core/internal';
import { answeredId, MAX_FRAME_BYTES, refuseLength, TOO_LONG } from '../wire/frame.ts';
import type { SkippedLine } from '../wire/lines.ts';
import { takeStandardOutput } from '../wire/stdout.ts';
import { fromAgent } from './agent-side.ts';
import { cancel, fromEditor } from './editor-side.ts';
import { AgentLife } from './life.ts';
import { encode, failed, readMessage } from './message.ts';
import type { AcpProxy, ProxyEvent, ProxyOptions } from './options.ts';
import { Parts } from './parts.ts';
import { Port } from './port.ts';
import { abandon } from './restore.ts';
import { recordExit } from './stop.ts';

/** How long the agent may take to exit when its input ends. */
const EXIT_MS = 500;
/** How long the editor may take to read the last messages. */
const FLUSH_MS = 500;
/** How long after a stop the end of the process counts as its consequence. */
const AFTERMATH_MS = 5_000;
/** How much of a line that is not a message is shown. */
const SHOWN = 200;

/**
 * Stands between an editor and an agent, and makes the agent stop: it passes everything on, and where the agent does not do
 * what a cancel asks for, does it in its place. Experimental.
 *
 * @returns The proxy. It ends with the editor or the agent; dispose it to end both sides.
 */
export function proxyAcp(options: ProxyOptions): AcpProxy {
  const { output, restore } = options.output ? { output: options.output, restore: () => {} } : takeStandardOutput();
  const proxy = new Connection(options, output);
  proxy.closed.then(restore, restore);
  return proxy;
}

class Connection extends Parts implements AcpProxy {
  readonly editor: Port;
  readonly life: AgentLife;
  readonly closed: Promise<{ readonly code: number }>;
  readonly #onEvent: ProxyOptions['onEvent'];
  readonly #end = Promise.withResolvers<{ readonly code: number }>();
  #isOver = false;

  constructor(options: ProxyOptions, output: Writable) {
    super(options);
    this.closed = this.#end.promise;
    this.#onEvent = options.onEvent;
    this.editor = new Port(options.input ?? process.stdin, output, {
      onLine: (line) => this.#fromEditor(line),
      onSkipped: (line) => this.#skippedByEditor(line),
      onEnd: () => this.#close('input-end', 0),
      onFull: (isFull) => this.life.pause(isFull),
    });
    const { clock, editor, follow } = this;
    this.life = new AgentLife({
      clock,
      editor,
      follow,
      start: options.start,
      onLine: (line) => this.#fromAgent(line),
      onSkipped: (line) => this.#skippedByAgent(line),
      onGone: (code) => this.#agentGone(code),
      onRestart: (why) => abandon(this, why),
    });
  }

  readonly onEvent = (event: ProxyEvent): void => this.#onEvent?.(event);

  readonly follow = (work: Promise<unknown>): void => {
    work.catch((error: unknown) => {
      this.onEvent({ type: 'problem', message: error instanceof Error ? error.message : String(error) });
      this.#close('failure', 1);
    });
  };

  close(by: string): Promise<{ readonly code: number }> {
    this.#close(by, 0);
    return this.closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close('close');
  }

  /** Cancels what runs, ends the agent with everything it started, and closes. */
  #close(by: string, code: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#finish(by).then(
      () => this.#end.resolve({ code }),
      (error: unknown) => {
        this.onEvent({ type: 'problem', message: String(error) });
        this.#end.resolve({ code: 1 });
      },
    );
  }

  async #finish(by: string): Promise<void> {
    const sessions = [...this.sessions.values()];
    if (by === 'agent-exit' || by === 'failure') this.#fail();
    else {
      for (const session of sessions) {
        const line = encode({ method: 'session/cancel', params: { sessionId: session.agentId } });
        cancel(this, session, { by, line });
      }
    }
    const stops = Promise.all(sessions.flatMap(({ stop }) => (stop === undefined ? [] : [stop.end.promise])));
    // Without an editor no one waits for answers: the end of its input tells the agent as well.
    if (by !== 'input-end') await stops;
    const processes = await this.life.end(by === 'input-end' ? this.waitMs : EXIT_MS);
    for (const session of sessions) recordExit(this, session);
    await stops;
    await Promise.all(this.reports);
    this.onEvent({ type: 'end', by, dropped: this.dropped, processes });
    await waitAtMost(this.editor.flush(), FLUSH_MS, this.clock);
    this.editor.close();
  }

  /** What the editor waits for fails: it was not cancelled. */
  #fail(): void {
    const sessions = [...this.sessions.values()];
    const held = sessions.flatMap((session) => session.held.splice(0)).map(({ id }) => id);
    const open = [...this.asked].flatMap(([id, { session }]) => (session?.stop === undefined ? [id] : []));
    for (const id of [...open, ...held]) if (id !== undefined) this.editor.send(failed(id, 'The agent has ended'));
    for (const session of sessions) recordExit(this, session);
  }

  #fromEditor(line: string): void {
    const message = this.#isOver ? undefined : readMessage(line);
    if (message === undefined) return;
    if ('refusal' in message) this.editor.send(message.refusal);
    else fromEditor(this, message);
  }

  #fromAgent(line: string): void {
    const message = readMessage(line);
    if (message === undefined) return;
    if ('refusal' in message) this.#drop(`the agent wrote what is no message: ${line.slice(0, SHOWN)}`);
    else fromAgent(this, message);
  }

  #drop(message: string): void {
    this.dropped++;
    this.onEvent({ type: 'problem', message });
  }

  /** The side that waits for an answer must learn that there is none. */
  #skippedByEditor({ head }: SkippedLine): void {
    const id = answeredId(head);
    if (id === undefined || !this.questions.delete(id)) this.editor.send(JSON.stringify(refuseLength()));
    else this.life.send(failed(id, TOO_LONG));
  }

  #skippedByAgent({ head }: SkippedLine): void {
    this.#drop(`the agent wrote a line of more than ${MAX_FRAME_BYTES} bytes`);
    const id = answeredId(head);
    if (id !== undefined) this.#fromAgent(failed(id, TOO_LONG));
  }

  /** An agent that ends in a stop is started again; otherwise its end is the end. */
  #agentGone(code: number | null): void {
    const isStopping = [...this.sessions.values()].some((session) => session.stop !== undefined || session.isOwed);
    const isAftermath = this.clock.now() - this.stoppedAt < AFTERMATH_MS;
    if (isStopping || isAftermath) this.follow(this.life.restart('it exited when it was told to stop'));
    else this.#close('agent-exit', code ?? 1);
  }
}

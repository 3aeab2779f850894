import { CancellationToken, type StopMode, type Tool } from '@whoa/core';
import type { StoreConversations } from '@whoa/tasks';
import { EXIT } from '../command.ts';
import { listenForInterrupts } from '../terminal/interrupts.ts';
import { printEnd } from '../terminal/run/print-end.ts';
import { RunView } from '../terminal/run/run-view.ts';
import type { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

export interface ChatOptions {
  readonly conversations: Pick<StoreConversations, 'processMessage'>;
  /** The name of the conversation. */
  readonly conversation: string;
  readonly screen: Screen;
  /** Why a run does not start, if delivery is paused. */
  readonly explainWait: () => Promise<string | undefined>;
  readonly tools: readonly Tool[];
  /** The mode of the first stop. */
  readonly first: StopMode | undefined;
  readonly isFull: boolean;
}

/** The time from a message to an idle agent until the agent is idle again. */
interface Turn {
  readonly token: CancellationToken;
  readonly view: RunView;
  readonly interrupts: Disposable;
  /** Messages without a reply. */
  pending: number;
}

/**
 * A conversation at a terminal. A line starts a run, or steers the run that works. A stop ends the run, not the chat.
 * What a message does to a run is decided by the conversation, not here.
 */
export class Chat {
  /** Resolves when the user has left and nothing runs any more. */
  readonly closed: Promise<void>;
  readonly #options: ChatOptions;
  readonly #close: () => void;
  #turn: Turn | undefined;
  /** Lines that were typed while a run was being stopped. They are for the next one. */
  #next: string[] = [];
  #hasRun = false;
  #isLeaving = false;
  #isWarned = false;

  constructor(options: ChatOptions) {
    this.#options = options;
    const { promise, resolve } = Promise.withResolvers<void>();
    [this.closed, this.#close] = [promise, resolve];
  }

  get isIdle(): boolean {
    return this.#turn === undefined;
  }

  /** Takes a message of the user. `shown` has labels for long pastes. */
  send(text: string, shown: string): void {
    this.#isWarned = false;
    const { screen } = this.#options;
    for (const [index, one] of shown.split('\n').entries()) {
      screen.note(screen.style('bold', `${index === 0 ? '›' : ' '} ${one}`));
    }
    if (this.#turn?.token.isCancelled) this.#next.push(text);
    else this.#process(text);
  }

  /** Shows the task of a run. */
  showTask(id: string): void {
    this.#turn?.view.begin(id, { isQuiet: this.#hasRun });
    this.#hasRun = true;
  }

  /** Stops the run. Without one, the second Ctrl-C leaves. */
  interrupt(key: 'escape' | 'ctrl-c'): void {
    if (this.#turn !== undefined) process.emit('SIGINT', 'SIGINT');
    else if (key === 'ctrl-c' && this.#isWarned) this.leave();
    else if (key === 'ctrl-c') {
      this.#isWarned = true;
      this.#options.screen.note(this.#options.screen.style('dim', 'Ctrl-C again leaves, and so does Ctrl-D'));
    }
  }

  /** Leaves as soon as nothing runs. */
  leave(): void {
    this.#isLeaving = true;
    this.#next = [];
    if (this.isIdle) this.#close();
  }

  #process(line: string): void {
    const turn = (this.#turn ??= this.#begin());
    const { conversations, conversation, screen } = this.#options;
    turn.pending++;
    const onEvent = (event: Parameters<RunView['show']>[0]): void => turn.view.show(event);
    conversations
      .processMessage(conversation, line, { policy: 'steer', token: turn.token, onEvent })
      .then(({ status, task }) => {
        if (task !== undefined && ['answered', 'failed', 'cancelled'].includes(status)) printEnd(task, screen);
        else if (status !== 'steered') screen.note(`${screen.style('red', '✘')} the message was ${status}`);
      })
      .catch((error: unknown) => screen.note(`${screen.style('red', '✘')} ${oneLine(String(error), 2_000)}`))
      .finally(() => {
        turn.pending--;
        if (turn.pending === 0) this.#end(turn);
      })
      .catch(() => {});
  }

  #begin(): Turn {
    const { screen, tools, first, isFull } = this.#options;
    const token = new CancellationToken({ name: 'whoa chat' });
    const view = new RunView(screen, { tools, first, isFull });
    const exit = (): void => {
      view.leave();
      process.exit(EXIT.cancelled);
    };
    const interrupts = listenForInterrupts({
      token,
      exit,
      level: () => view.level,
      onLastWait: (ms) => view.lastWait(ms),
      first,
    });
    screen.input(undefined);
    screen.status(() => 'thinking');
    const turn = { token, view, interrupts, pending: 0 };
    this.#explainWait(turn).catch(() => {});
    return turn;
  }

  /** A store that cannot be read is reported by the run. */
  async #explainWait(turn: Turn): Promise<void> {
    const { screen, explainWait } = this.#options;
    const why = await explainWait();
    if (why !== undefined && this.#turn === turn) screen.note(screen.style('yellow', `■ waiting: ${why}`));
  }

  #end(turn: Turn): void {
    const { screen } = this.#options;
    turn.interrupts[Symbol.dispose]();
    turn.token[Symbol.dispose]();
    screen.status(undefined);
    screen.endLine();
    this.#turn = undefined;
    const next = this.#next.splice(0);
    for (const line of next) this.#process(line);
    if (!this.isIdle) return;
    if (this.#isLeaving) this.#close();
    else this.onIdle();
  }

  /** Called when the agent is idle again. */
  onIdle: () => void = () => {};
}

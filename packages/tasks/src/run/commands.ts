import { CancellationToken, type Run } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import type { Orders } from '../delivery/worker-store.ts';
import type { NumberedCommand } from '../task.ts';
import type { Journal } from './journal/journal.ts';
import { toUserMessage } from './work.ts';

type Steer = Extract<NumberedCommand, { type: 'steer' }>;

/** Carries out the commands to a task other than stops, each once, and marks them as done in its journal. */
export class Commands {
  readonly #journal: Journal;
  readonly #seen = new Set<number>();
  #run: Run | undefined;
  /** Commands for a run that has not started yet. */
  #waiting: NumberedCommand[] = [];
  /** Messages that were passed to the run and that it has not read yet. */
  readonly #steers = new Map<UserMessage, { readonly number: number; readonly token: CancellationToken }>();
  #orderNumber = 0;

  constructor(journal: Journal) {
    this.#journal = journal;
  }

  /** Carries out the new commands. A message that is no longer listed was withdrawn, and is not delivered. */
  applyOrders({ commands, orderNumber }: Pick<Orders, 'commands' | 'orderNumber'>): void {
    // Ignore older orders: responses can arrive out of order.
    if (orderNumber >= this.#orderNumber) {
      this.#orderNumber = orderNumber;
      this.#withdraw(new Set(commands.map(({ number }) => number)));
    }
    const added = commands.filter(({ number }) => !this.#seen.has(number));
    for (const { number } of added) this.#seen.add(number);
    for (const command of added) this.#handleCommand(command);
  }

  /** Carries out what waited for the run. */
  begin(run: Run): void {
    this.#run = run;
    const waited = this.#waiting;
    this.#waiting = [];
    for (const command of waited) this.#handleCommand(command);
  }

  /** Call it when the run has read a message. */
  delivered(message: UserMessage): void {
    // Not written before it is marked as done: whoever takes over in between would deliver the message again.
    this.#journal.done(this.#steers.get(message)?.number);
    this.#steers.delete(message);
  }

  /** Ends a sub-agent's call: only the run itself reads messages, and one waits for it. */
  interrupt(callId: string): void {
    this.#run?.cancelCall(
      callId,
      { kind: 'steered', message: 'a message of the user comes first' },
      { mode: 'graceful' },
    );
  }

  #handleCommand(command: NumberedCommand): void {
    const { number } = command;
    if (this.#run === undefined) {
      this.#waiting.push(command);
    } else if (command.type === 'cancel-call') {
      const { result } = this.#run.cancelCall(command.callId, command.reason ?? { via: 'store' });
      this.#journal.add({ type: 'command-handled', number, receipt: result });
      this.#journal.done(number);
    } else if (!this.#steer(this.#run, command)) {
      this.#journal.add({ type: 'command-handled', number, receipt: 'refused' });
      // A task that waits with the message runs later, and reports what is wrong with it.
      if (command.task === undefined) this.#journal.done(number);
      else this.#journal.decline(number);
    }
  }

  /** Passes a message to the run. Returns whether it is a valid message: any caller may have sent it. */
  #steer(run: Run, { message, number }: Steer): boolean {
    const token = new CancellationToken({ name: `message ${number}` });
    try {
      const given = run.steer(toUserMessage(message), { token });
      this.#steers.set(given.message, { number, token });
      return true;
    } catch {
      return false;
    }
  }

  #withdraw(wanted: ReadonlySet<number>): void {
    this.#waiting = this.#waiting.filter(({ number }) => wanted.has(number));
    for (const { number, token } of this.#steers.values()) if (!wanted.has(number)) token.cancel({}, { mode: 'now' });
  }
}

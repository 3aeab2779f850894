import { CancellationToken, type Run } from '@whoa/core';
import type { UserMessage } from '@whoa/core/embed';
import type { Orders } from '../delivery.ts';
import type { NumberedCommand } from '../task.ts';
import { messageOf } from './work.ts';

type Steer = Extract<NumberedCommand, { type: 'steer' }>;

/** The commands to a worker other than stops. Each is handled once. */
export class Commands {
  readonly #seen = new Set<number>();
  /** Commands for a run that has not started yet. */
  #waiting: NumberedCommand[] = [];
  /** Messages that were passed to the run and that it has not read yet. */
  readonly #steers = new Map<UserMessage, { readonly number: number; readonly token: CancellationToken }>();
  #orderNumber = 0;

  /** Returns the new commands. A message that is no longer listed was withdrawn, and is not delivered. */
  read({ commands, orderNumber }: Pick<Orders, 'commands' | 'orderNumber'>): readonly NumberedCommand[] {
    // Ignore older orders: responses can arrive out of order.
    if (orderNumber >= this.#orderNumber) {
      this.#orderNumber = orderNumber;
      this.#withdraw(new Set(commands.map(({ number }) => number)));
    }
    const added = commands.filter(({ number }) => !this.#seen.has(number));
    for (const { number } of added) this.#seen.add(number);
    return added;
  }

  keep(command: NumberedCommand): void {
    this.#waiting.push(command);
  }

  /** Returns the commands that were kept for the run. */
  take(): readonly NumberedCommand[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }

  /** Passes a message to the run. Returns whether it is a valid message: any caller may have sent it. */
  steer(run: Run, { message, number }: Steer): boolean {
    const token = new CancellationToken({ name: `message ${number}` });
    try {
      const given = run.steer(messageOf(message), { token });
      this.#steers.set(given.message, { number, token });
      return true;
    } catch {
      return false;
    }
  }

  /** Call it when the run has read a message. Returns the number of its command. */
  delivered(message: UserMessage): number | undefined {
    const steer = this.#steers.get(message);
    this.#steers.delete(message);
    return steer?.number;
  }

  #withdraw(wanted: ReadonlySet<number>): void {
    this.#waiting = this.#waiting.filter(({ number }) => wanted.has(number));
    for (const { number, token } of this.#steers.values()) if (!wanted.has(number)) token.cancel({}, { mode: 'now' });
  }
}

import { LeaseLostError } from '../../errors.ts';
import type { ClaimHolder } from '../claim/claim-holder.ts';
import type { WorkerContext } from '../worker-context.ts';

interface ParkingOptions {
  readonly context: WorkerContext;
  readonly holder: ClaimHolder;
  /** How long a task may wait here for answers. */
  readonly parkAfterMs: number;
  /** Whether other tasks need the slot. */
  readonly isCrowded: () => boolean;
}

/** Parks a task in the store when it only waits for answers: then it takes no slot, and any worker can continue it. */
export class Parking implements Disposable {
  readonly #options: ParkingOptions;
  /** Calls whose intent is being written, and those that run. */
  readonly #moving = new Set<string>();
  #isReplying = false;
  #timer: Disposable | undefined;
  #parking: Promise<void> | undefined;

  constructor(options: ParkingOptions) {
    this.#options = options;
    options.holder.questions.onChange = () => this.update();
  }

  /** Whether nothing moves but the wait for answers. */
  get isIdle(): boolean {
    const { questions, token } = this.#options.holder;
    return questions.waiting > 0 && this.#moving.size === 0 && !this.#isReplying && !token.isCancelled;
  }

  note({ type, result }: { readonly type: string; readonly result?: unknown }): void {
    if (type === 'turn-start') this.#isReplying = true;
    if (type === 'turn-end') this.#isReplying = false;
    if (type === 'call-end') this.#moving.delete((result as { callId: string }).callId);
    this.update();
  }

  /** A call is about to start. */
  startCall(callId: string): void {
    this.#moving.add(callId);
    this.update();
  }

  /** Call it when something changed that decides whether the task can be parked. */
  update(): void {
    if (!this.isIdle) {
      this.#timer?.[Symbol.dispose]();
      this.#timer = undefined;
      return;
    }
    const { context, parkAfterMs, isCrowded } = this.#options;
    if (isCrowded() || parkAfterMs === 0) this.#parkNow();
    else if (parkAfterMs !== Infinity)
      this.#timer ??= context.world.clock.setTimer(parkAfterMs, () => this.#parkNow(), { keepAlive: false });
  }

  [Symbol.dispose](): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #parkNow(): void {
    this[Symbol.dispose]();
    if (this.#parking !== undefined) return;
    this.#parking = this.#park().finally(() => {
      this.#parking = undefined;
    });
    this.#options.context.background(this.#parking);
  }

  async #park(): Promise<void> {
    const { context, holder } = this.#options;
    const { journal, claim, questions } = holder;
    await journal.flush();
    // No call can start meanwhile: its intent waits for this.
    await journal.exclusively(async (position) => {
      while (this.isIdle) {
        try {
          const receipt = await context.store.park(claim, { position, orderNumber: questions.orderNumber });
          if (receipt.result === 'busy') holder.applyOrders(receipt.orders);
          else holder.park();
          return;
        } catch (error) {
          if (error instanceof LeaseLostError) return holder.lose(error);
          await context.retryAfter(error);
        }
      }
    });
  }
}

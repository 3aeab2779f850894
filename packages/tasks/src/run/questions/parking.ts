import type { WorkerContext } from '../../delivery/worker-context.ts';
import { LeaseLostError } from '../../errors.ts';
import type { ClaimHolder } from '../claim-holder.ts';

interface ParkingOptions {
  readonly context: WorkerContext;
  readonly holder: ClaimHolder;
  /** How long a task may wait here for answers. */
  readonly parkAfterMs: number;
  /** Whether other tasks need the slot. */
  readonly isCrowded: () => boolean;
}

interface ParkingEvent {
  readonly type: string;
  readonly callId?: string;
  readonly result?: { readonly callId: string };
}

/** Parks a task in the store when it only waits for answers: then it takes no slot, and any worker can continue it. */
export class Parking implements Disposable {
  readonly #options: ParkingOptions;
  /** Calls that are about to ask, whose intent is being written, and those that run. */
  readonly #moving = new Set<string>();
  #isReplying = false;
  /** How many background processes it has left running. */
  #background = 0;
  #timer: Disposable | undefined;
  #parking: Promise<void> | undefined;

  constructor(options: ParkingOptions) {
    this.#options = options;
    options.holder.questions.onChange = () => this.update();
  }

  /** Whether nothing moves but the wait for answers. */
  get isIdle(): boolean {
    const { questions, token } = this.#options.holder;
    if (!questions.isWaiting || this.#isReplying || this.#background > 0 || token.isCancelled) return false;
    return [...this.#moving].every((callId) => questions.isWaitingFor(callId));
  }

  record({ type, callId, result }: ParkingEvent): void {
    if (type === 'turn-start') this.#isReplying = true;
    if (type === 'turn-end') this.#isReplying = false;
    if (type === 'approval-requested') this.#moving.add(callId!);
    if (type === 'call-end') this.#moving.delete(result!.callId);
    this.update();
  }

  /** A call is about to start. */
  startCall(callId: string): void {
    this.#moving.add(callId);
    this.update();
  }

  /** Keeps the task here until it is disposed: a background process of it runs here. */
  preventParking(): Disposable {
    this.#background++;
    this.update();
    return {
      [Symbol.dispose]: () => {
        this.#background--;
        this.update();
      },
    };
  }

  /** Call it when something changed that decides whether the task can be parked. */
  update(): void {
    if (!this.isIdle) {
      this[Symbol.dispose]();
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
          if (error instanceof LeaseLostError) return holder.onLeaseLost(error);
          await context.retryAfter(error);
        }
      }
    });
  }
}

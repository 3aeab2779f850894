import type { WorkerContext } from '../../delivery/worker-context.ts';
import { LeaseLostError } from '../../errors.ts';
import type { ClaimHolder } from '../claim-holder.ts';
import { type CallPath, toPathId } from '../journal/nested.ts';

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
  readonly callIds?: readonly string[];
  readonly result?: { readonly callId: string };
}

/** A run inside a call: the calls of its current wave that have not ended; `undefined` between waves. */
interface NestedWave {
  readonly calls: Set<string> | undefined;
}

/** Parks a task in the store when it only waits for answers: then it takes no slot, and any worker can continue it. */
export class Parking implements Disposable {
  readonly #options: ParkingOptions;
  /** Calls that are about to ask, whose intent is being written, and those that run. */
  readonly #moving = new Set<string>();
  readonly #intended = new Set<string>();
  /** Runs inside calls, by the call. */
  readonly #nested = new Map<string, NestedWave>();
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
    return [...this.#moving].every((id) => this.#isWaiting(id));
  }

  /** Whether an agent runs in a call. */
  hasRunIn(id: string): boolean {
    return this.#nested.has(id);
  }

  /** Whether a call waits for an answer, or the run inside it only for its calls. */
  #isWaiting(id: string): boolean {
    const { calls } = this.#nested.get(id) ?? {};
    if (calls === undefined) return this.#options.holder.questions.isWaitingFor(id);
    return calls.size > 0 && [...calls].every((inner) => this.#isWaiting(`${id}/${inner}`));
  }

  record(event: ParkingEvent, path: CallPath): void {
    if (path.length > 0) this.#recordNested(event, path.map(({ callId }) => callId).join('/'));
    else this.#recordOwn(event);
    this.update();
  }

  #recordNested({ type, callIds, result }: ParkingEvent, id: string): void {
    if (type === 'run-start' || type === 'wave-end') this.#nested.set(id, { calls: undefined });
    if (type === 'wave-start') this.#nested.set(id, { calls: new Set(callIds) });
    if (type === 'call-end') this.#end(`${id}/${result!.callId}`, this.#nested.get(id)?.calls, result!.callId);
  }

  #end(id: string, calls: Set<string> | undefined, callId: string): void {
    calls?.delete(callId);
    this.#intended.delete(id);
    this.#nested.delete(id);
  }

  #recordOwn({ type, callId, result }: ParkingEvent): void {
    if (type === 'turn-start') this.#isReplying = true;
    if (type === 'turn-end') this.#isReplying = false;
    if (type === 'approval-requested') this.#moving.add(callId!);
    if (type === 'call-end') this.#end(result!.callId, this.#moving, result!.callId);
  }

  /** A call is about to start: its intent is written. */
  startCall(callId: string, path: CallPath): void {
    const id = toPathId(path, callId);
    this.#intended.add(id);
    if (path.length === 0) this.#moving.add(id);
    this.update();
  }

  /** Whether the intent of a call was written here. */
  isIntended(id: string): boolean {
    return this.#intended.has(id);
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

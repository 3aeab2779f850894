import type { OfferedTask } from '../store.ts';
import type { Offer, OfferResult } from './worker-store.ts';

/** Where a runner finds what an engine hands out. */
export interface OfferSource {
  /** Called once: `wake` when there are offers. Only those of these agents may be returned. */
  connect(to: { readonly agents: readonly string[]; readonly wake: () => void }): void;
  /** Returns at most `limit` offers that wait here. */
  next(limit: number): readonly Offer[];
  /** Called with what became of them. Without `results` the store has not answered: return them again. */
  settle(offers: readonly Offer[], results?: readonly OfferResult[]): void;
  /** Called with tasks that must be offered again, and then noted in the store. */
  repeat(tasks: readonly OfferedTask[]): void;
  /** Called when it changes how many more tasks the runner can run. */
  setRoom(room: number): void;
}

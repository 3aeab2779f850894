import type { ClaimRef, Orders } from '../../delivery.ts';
import type { LeaseLostError } from '../../errors.ts';

/** A task that runs under a session. */
export interface Holder {
  readonly claim: ClaimRef;
  obey(orders: Orders): void;
  /** The session may be over soon: stop the work before that. */
  fence(): void;
  /** The session is over: stop at once, writes no longer count. */
  lose(error: LeaseLostError): void;
}

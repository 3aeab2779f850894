import type { CancellationToken, StopMode } from '@whoa/core';
import type { World } from '@whoa/core/embed';
import type { AcpOptions } from '../options.ts';
import type { SessionStore } from '../store/store.ts';
import type { Client } from './client.ts';

/** What all sessions of one connection share. */
export interface ConnectionContext {
  readonly options: AcpOptions;
  readonly client: Client;
  readonly store: SessionStore;
  readonly mode: StopMode;
  readonly flushIntervalMs: number;
  readonly onError: (error: unknown) => void;
  readonly world: World;
  /** Cancelled when everything must stop. */
  readonly token: CancellationToken;
  /** Cancelled when nothing can be sent any more. */
  readonly gone: CancellationToken;
}

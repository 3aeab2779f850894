import { DEFAULTS } from '../rules/rules.ts';
import type { StoreOptions } from '../store-options.ts';
import { checkBytes, checkCount, checkDuration, checkLimit } from './checked/checks.ts';
import type { Retention, StoredSettings, StoreRules } from './driver.ts';

/** Longer than any retention. */
const FOREVER_MS = 100 * 365 * 24 * 3_600_000;

/** Returns what applies under the settings that a store holds. */
export function toRetention({ retentionMs, conversationRetentionMs, archive }: StoredSettings): Retention {
  const expiresMs = retentionMs ?? DEFAULTS.retentionMs;
  return {
    expiresMs,
    retentionMs: archive === 1 ? FOREVER_MS : expiresMs,
    conversationRetentionMs: conversationRetentionMs ?? DEFAULTS.conversationRetentionMs,
  };
}

/**
 * Validates the limits of a store and fills in defaults.
 *
 * @returns The limits for `createCheckedStore`.
 * @throws RangeError when a limit is invalid. The message names the option.
 */
export function createStoreRules(options: StoreOptions): StoreRules {
  const { maxRunningPerTenant, maxRunningPerAgent, retentionMs, conversationRetentionMs, archive } = options;
  const given = {
    ...(retentionMs !== undefined && { retentionMs: checkDuration('retentionMs', retentionMs) }),
    ...(conversationRetentionMs !== undefined && {
      conversationRetentionMs: checkDuration('conversationRetentionMs', conversationRetentionMs),
    }),
    ...(archive !== undefined && { archive: archive ? 1 : 0 }),
  };
  return {
    maxAttempts: checkLimit('maxAttempts', options.maxAttempts ?? DEFAULTS.maxAttempts),
    ...toRetention(given),
    given,
    maxJournalBytes: checkBytes('maxJournalBytes', options.maxJournalBytes ?? DEFAULTS.maxJournalBytes),
    maxReady: checkCount('maxReady', options.maxReady ?? DEFAULTS.maxReady),
    ...(maxRunningPerTenant !== undefined && {
      maxRunningPerTenant: checkCount('maxRunningPerTenant', maxRunningPerTenant),
    }),
    ...(maxRunningPerAgent !== undefined && {
      maxRunningPerAgent: checkCount('maxRunningPerAgent', maxRunningPerAgent),
    }),
  };
}

import { checkBytes, checkCount, checkDuration, checkLimit } from './checked/checks.ts';
import type { Retention, StoredSettings, StoreRules } from './driver.ts';
import { DEFAULTS } from './rules/rules.ts';
import type { StoreOptions } from './store-options.ts';

/** Returns what applies under the settings that a store holds. */
export function toRetention(held: StoredSettings): Retention {
  return {
    retentionMs: held.retentionMs ?? DEFAULTS.retentionMs,
    conversationRetentionMs: held.conversationRetentionMs ?? DEFAULTS.conversationRetentionMs,
  };
}

/**
 * Validates the limits of a store and fills in defaults.
 *
 * @returns The limits for `createCheckedStore`.
 * @throws RangeError when a limit is invalid. The message names the option.
 */
export function createStoreRules(options: StoreOptions): StoreRules {
  const { maxRunningPerTenant, maxRunningPerAgent, retentionMs, conversationRetentionMs } = options;
  const given = {
    ...(retentionMs !== undefined && { retentionMs: checkDuration('retentionMs', retentionMs) }),
    ...(conversationRetentionMs !== undefined && {
      conversationRetentionMs: checkDuration('conversationRetentionMs', conversationRetentionMs),
    }),
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

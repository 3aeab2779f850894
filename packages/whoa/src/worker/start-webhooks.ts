import { SettingsError } from '@whoa/core';
import type { Telemetry } from '@whoa/server/telemetry';
import { createWebhooks, type WebhookAttempt } from '@whoa/server/webhooks';
import type { TaskStore } from '@whoa/tasks';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import type { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

export interface WebhookSettings {
  readonly config: Pick<WhoaConfig, 'webhooks'>;
  readonly store: TaskStore;
  readonly telemetry: Telemetry;
  readonly screen: Screen;
}

const MAX_LINE_CHARACTERS = 300;

/** Starts the webhooks of the configuration, if it has any. */
export async function startWebhooks(given: WebhookSettings): Promise<AsyncDisposable | undefined> {
  const { config, store, telemetry } = given;
  const { webhooks = [] } = config;
  if (webhooks.length === 0) return undefined;
  const started = openWebhooks({
    store,
    webhooks,
    onAttempt: (attempt) => printAttempt(attempt, given),
    onError: () => telemetry.count('whoa.store.errors', 'feed'),
  });
  await started.start();
  return started;
}

function openWebhooks(options: Parameters<typeof createWebhooks>[0]): ReturnType<typeof createWebhooks> {
  try {
    return createWebhooks(options);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new UsageError(`the configuration is not valid: ${error.message}`, 'CONFIG');
  }
}

function printAttempt(attempt: WebhookAttempt, { telemetry, screen }: WebhookSettings): void {
  const { url, taskId, result, error = '', nextInMs } = attempt;
  telemetry.count('whoa.webhook.attempts', result);
  // The rest of the URL may be a secret.
  const { host } = new URL(url);
  screen.data({ type: 'webhook', ...attempt, url: host });
  if (result === 'delivered') return;
  telemetry.log({ level: 'warn', event: 'webhook-failed', taskId, value: result });
  const next = nextInMs === undefined ? 'it is given up' : `next attempt in ${Math.round(nextInMs / 1_000)} s`;
  if (!screen.asJson) screen.note(`✘ webhook to ${host}: ${oneLine(error, MAX_LINE_CHARACTERS)}; ${next}`);
}

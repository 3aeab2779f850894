// Signed requests that report the end of each task.
export {
  createWebhooks,
  type Webhook,
  type WebhookAttempt,
  type Webhooks,
  type WebhooksOptions,
  WEBHOOKS_TENANT,
} from './webhooks.ts';

// Signed requests that report the end of each task.
export { createWebhooks, type Webhook, type WebhookAttempt, type Webhooks } from './webhooks.ts';

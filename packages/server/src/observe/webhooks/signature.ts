import { createHmac } from 'node:crypto';
import { SettingsError } from '@whoa/core';

const PREFIX = 'whsec_';
const MIN_BYTES = 24;
const MAX_BYTES = 64;
/** More than one only while a secret is being replaced. */
const MAX_SECRETS = 5;

/** Reads the secrets of a webhook: `whsec_` and 24 to 64 bytes in base64. */
export function readSecrets(given: string | readonly string[], field: string): readonly Buffer[] {
  const secrets = typeof given === 'string' ? [given] : given;
  if (!Array.isArray(secrets) || secrets.length === 0 || secrets.length > MAX_SECRETS)
    throw new SettingsError(field, `expected a secret, or a list of 1 to ${MAX_SECRETS}`);
  return secrets.map((secret: unknown) => {
    const text = typeof secret === 'string' && secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : '';
    const key = Buffer.from(text, 'base64');
    const isWhole = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
    if (isWhole && key.length >= MIN_BYTES && key.length <= MAX_BYTES) return key;
    // Don't quote it: the message may be logged.
    throw new SettingsError(
      field,
      `expected ${PREFIX} and ${MIN_BYTES} to ${MAX_BYTES} bytes in base64; to create one: echo "${PREFIX}$(openssl rand -base64 32)"`,
    );
  });
}

/** Returns the headers of the Standard Webhooks convention for one attempt. There is one signature for each secret. */
export function signatureHeaders(
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
  secrets: readonly Buffer[],
): Record<string, string> {
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return { 'webhook-id': id, 'webhook-timestamp': `${timestamp}`, 'webhook-signature': signatures.join(' ') };
}

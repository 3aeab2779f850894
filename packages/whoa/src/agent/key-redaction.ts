import type { RunOptions } from '@whoa/core';
import { COMPATIBLE_KEY, KEYED_PROVIDERS } from '../model/model-name.ts';

/** Key formats that can be recognised. */
const SHAPES: Readonly<Record<string, RegExp>> = {
  'private key': /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  'Anthropic key': /\bsk-ant-[\w-]{20,}/g,
  'OpenAI key': /\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}/g,
  'AWS key': /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  'GitHub token': /\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})/g,
  'GitLab token': /\bglpat-[\w-]{20,}/g,
  'Google key': /\bAIza[\w-]{35}/g,
  'Slack token': /\bxox[abeoprs]-[\w-]{10,}/g,
  'Stripe key': /\b[sr]k_live_[A-Za-z0-9]{20,}/g,
  'npm token': /\bnpm_[A-Za-z0-9]{36}/g,
  'PyPI token': /\bpypi-[\w-]{50,}/g,
  'Whoa token': /\bwhoa_[\w-]{43}/g,
  'Hugging Face token': /\bhf_[A-Za-z0-9]{30,}/g,
};
/** Shorter values of key variables are not keys, and may occur in any text. */
const MIN_OWN_KEY = 12;

/** Redacts keys of known formats from results, and all keys in the environment of this process. */
export function createKeyRedaction(env: NodeJS.ProcessEnv): NonNullable<RunOptions['redact']> {
  const variables = [COMPATIBLE_KEY, ...Object.values(KEYED_PROVIDERS).map(({ variable }) => variable)];
  const own = variables.map((name) => [name, env[name] ?? ''] as const).filter(([, key]) => key.length >= MIN_OWN_KEY);
  return (given) => {
    let count = 0;
    const mark = (name: string): string => {
      count++;
      return `[redacted: ${name}]`;
    };
    let text = given;
    for (const [name, key] of own) text = text.replaceAll(key, () => mark(name));
    for (const [name, shape] of Object.entries(SHAPES)) text = text.replace(shape, () => mark(name));
    return { text, count };
  };
}

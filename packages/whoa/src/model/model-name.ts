import { UsageError } from '../command.ts';

/** Which model, as `--model` says it. */
export type ModelName =
  | { readonly provider: 'anthropic' | 'openai'; readonly model: string }
  | { readonly provider: 'compatible'; readonly url: string; readonly model: string }
  | { readonly provider: 'scripted'; readonly file: string };

/** Which variable holds a provider's key, and which model is meant when only the key is known. */
export const KEYED_PROVIDERS = {
  anthropic: { variable: 'ANTHROPIC_API_KEY', model: 'claude-sonnet-4-5' },
  openai: { variable: 'OPENAI_API_KEY', model: 'gpt-5' },
} as const;

/** A key for a `compatible` server, if it wants one. */
export const COMPATIBLE_KEY = 'WHOA_API_KEY';

const FORMS = 'anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE';
// The name may hold colons (llama3:8b), and so may the host (its port, which is no name).
const COMPATIBLE = /^(https?:\/\/(?:\[[^\]]+\]|[^:/\s]+)(?::\d+)?(?:\/[^:\s]*)?):(?!\d+(?:\/|$))(.+)$/;

/** Reads `anthropic:claude-sonnet-4-5`, `openai:gpt-5`, `compatible:http://localhost:11434/v1:llama3` or `scripted:file`. */
export function parseModelName(text: string): ModelName {
  const [, provider, rest] = /^([a-z]+):(.+)$/s.exec(text) ?? [];
  if (rest !== undefined) {
    if (provider === 'anthropic' || provider === 'openai') return { provider, model: rest };
    if (provider === 'scripted') return { provider, file: rest };
    const [, url, model] = COMPATIBLE.exec(rest) ?? [];
    if (provider === 'compatible' && url !== undefined && model !== undefined) return { provider, url, model };
  }
  throw new UsageError(`--model: '${text}' names no model; use ${FORMS}`);
}

/** The model that is meant when nobody named one: whose key is there. */
export function defaultModelName(env: NodeJS.ProcessEnv): string {
  if (env['WHOA_MODEL']) return env['WHOA_MODEL'];
  for (const [provider, { variable, model }] of Object.entries(KEYED_PROVIDERS)) {
    if (env[variable]) return `${provider}:${model}`;
  }
  const variables = Object.values(KEYED_PROVIDERS).map(({ variable }) => variable);
  throw new MissingKeyError(`no model: set ${variables.join(' or ')}, or name one with --model (${FORMS})`);
}

/** Thrown when a model cannot be asked without a key. An editor reads the code and offers a login. */
export class MissingKeyError extends UsageError {
  constructor(message: string) {
    super(message, 'AUTH_REQUIRED');
  }
}

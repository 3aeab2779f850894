import { UsageError } from '../command.ts';

/** A parsed `--model`. */
export type ModelName =
  | { readonly provider: 'anthropic' | 'openai'; readonly model: string }
  | { readonly provider: 'compatible'; readonly url: string; readonly model: string }
  | { readonly provider: 'scripted'; readonly file: string };

/** The key variable and the default model of each provider. */
export const KEYED_PROVIDERS = {
  anthropic: { variable: 'ANTHROPIC_API_KEY', model: 'claude-sonnet-4-5' },
  openai: { variable: 'OPENAI_API_KEY', model: 'gpt-5' },
} as const;

/** The key variable for a `compatible` server, if it needs a key. */
export const COMPATIBLE_KEY = 'WHOA_API_KEY';

const FORMS = 'anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE';
// The model name may contain colons (llama3:8b). A port after the host must not be read as the model name.
const COMPATIBLE = /^(https?:\/\/(?:\[[^\]]+\]|[^:/\s]+)(?::\d+)?(?:\/[^:\s]*)?):(?!\d+(?:\/|$))(.+)$/;

/** Parses `anthropic:claude-sonnet-4-5`, `openai:gpt-5`, `compatible:http://localhost:11434/v1:llama3` or `scripted:file`. */
export function parseModelName(text: string): ModelName {
  const [, provider, rest] = /^([a-z]+):(.+)$/s.exec(text) ?? [];
  if (rest !== undefined) {
    if (provider === 'anthropic' || provider === 'openai') return { provider, model: rest };
    if (provider === 'scripted') return { provider, file: rest };
    const [, url, model] = COMPATIBLE.exec(rest) ?? [];
    if (provider === 'compatible' && url !== undefined && model !== undefined) return { provider, url, model };
  }
  throw new UsageError(`--model: expected ${FORMS}, got '${text}'`);
}

/** The default model: `WHOA_MODEL`, otherwise that of the first provider whose key is set. */
export function defaultModelName(env: NodeJS.ProcessEnv): string {
  if (env['WHOA_MODEL']) return env['WHOA_MODEL'];
  for (const [provider, { variable, model }] of Object.entries(KEYED_PROVIDERS)) {
    if (env[variable]) return `${provider}:${model}`;
  }
  const variables = Object.values(KEYED_PROVIDERS).map(({ variable }) => variable);
  throw new MissingKeyError(
    `no model is set: set ${variables.join(' or ')}, or choose one with --model (${FORMS}); 'whoa demo' needs none`,
  );
}

/** Returns the key for a model, if it needs one. Throws if that is missing. */
export function readKey(wanted: ModelName, env: NodeJS.ProcessEnv): string | undefined {
  if (wanted.provider === 'scripted') return undefined;
  if (wanted.provider === 'compatible') return env[COMPATIBLE_KEY];
  const { variable } = KEYED_PROVIDERS[wanted.provider];
  const key = env[variable];
  if (!key) throw new MissingKeyError(`${wanted.provider}:${wanted.model} needs a key: set ${variable}`);
  return key;
}

/** Thrown when the key for a model is missing. Editors read the code and offer a login. */
class MissingKeyError extends UsageError {
  constructor(message: string) {
    super(message, 'AUTH_REQUIRED');
  }
}

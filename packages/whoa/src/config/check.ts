import { isAbsolute } from 'node:path';
import { readCommandLine } from '../approvals/command-line.ts';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from './config.ts';

/** Returns what is wrong with the value of a field and what to write, or `undefined` if the value is valid. */
type Check = (value: unknown) => string | undefined;

const BACKENDS = ['sqlite', 'redis', 'postgres', 'memory'];
const POLICIES = ['queue', 'replace', 'reject'];
const PRESETS = ['graceful', 'now', 'kill'];
const DECISIONS = ['allow', 'ask', 'deny'];
const RULE_FIELDS = ['tool', 'command', 'path'];
const MAX_LEVEL_MS = 3_600_000;

const FIELDS: Readonly<Record<keyof WhoaConfig, Check>> = {
  model: checkText("'anthropic:claude-sonnet-4-5'"),
  instructions: checkText("'Answer in French.'"),
  agents: checkAgents,
  store: checkStore,
  policy: checkPolicy,
  ladder: checkLadder,
  sandbox: checkSandbox,
  approvals: checkApprovals,
};

/** Throws an error that names the first invalid field and says what to write. */
export function checkConfig(config: object, file: string): asserts config is WhoaConfig {
  for (const [name, value] of Object.entries(config)) {
    const isKnown = Object.hasOwn(FIELDS, name);
    const wrong = isKnown
      ? value === undefined
        ? undefined
        : FIELDS[name as keyof WhoaConfig](value)
      : `unknown field; use ${Object.keys(FIELDS).join(', ')}`;
    if (wrong !== undefined) throw new UsageError(`${file}: ${name}: ${wrong}`, 'CONFIG');
  }
}

function checkText(example: string): Check {
  return (value) => (typeof value === 'string' && value !== '' ? undefined : `expected a string, such as ${example}`);
}

function checkAgents(value: unknown): string | undefined {
  if (!isRecord(value))
    return 'expected { name: agent }, where each agent is createAgent({ … }) or a function that returns one';
  const wrong = Object.entries(value).find(
    ([, agent]) => typeof agent !== 'function' && !(isRecord(agent) && typeof agent['run'] === 'function'),
  );
  return wrong && `'${wrong[0]}' is not an agent; write createAgent({ … }) or a function that returns one`;
}

function checkStore(value: unknown): string | undefined {
  if (!isRecord(value))
    return "expected { backend: 'sqlite', file: '/…/tasks.db' }, or a store created by createTaskStore";
  if (typeof value['claim'] === 'function') return undefined;
  const { backend, file } = value;
  if (!BACKENDS.includes(backend as string))
    return `backend: expected one of ${BACKENDS.join(', ')}, got ${shown(backend)}`;
  const isRelative = backend === 'sqlite' && file !== undefined && !(typeof file === 'string' && isAbsolute(file));
  if (isRelative) return `file: expected an absolute path, got ${shown(file)}`;
  return undefined;
}

function checkPolicy(value: unknown): string | undefined {
  if (POLICIES.includes(value as string)) return undefined;
  const why = value === 'steer' ? ' (an editor expects a response to every prompt, so prompts cannot be merged)' : '';
  return `expected one of ${POLICIES.join(', ')}, got ${shown(value)}${why}`;
}

function checkLadder(value: unknown): string | undefined {
  if (PRESETS.includes(value as string)) return undefined;
  const form = `expected ${PRESETS.map(shown).join(', ')} or { drainMs: 5_000, abortMs: 2_000 }`;
  if (!isRecord(value)) return form;
  for (const [name, ms] of Object.entries(value)) {
    if (name !== 'drainMs' && name !== 'abortMs') return `unknown field '${name}'; ${form}`;
    if (!(typeof ms === 'number' && ms >= 0 && ms <= MAX_LEVEL_MS)) {
      return `${name}: expected milliseconds from 0 to ${MAX_LEVEL_MS}, got ${shown(ms)}`;
    }
  }
  return undefined;
}

const SANDBOX_FIELDS = ['kind', 'readable', 'network', 'limits'];

function checkSandbox(value: unknown): string | undefined {
  const kinds = `expected ${['workspace', 'read-only', 'none'].map(shown).join(', ')}`;
  const { kind = value, ...rest } = isRecord(value) ? value : {};
  if (!['workspace', 'read-only', 'none'].includes(kind as string))
    return `${kinds}, or { kind: 'workspace', network: … }`;
  const unknown = Object.keys(rest).find((name) => !SANDBOX_FIELDS.includes(name));
  if (unknown !== undefined) return `unknown field '${unknown}'; use ${SANDBOX_FIELDS.join(', ')}`;
  const allow = (rest['network'] as { allow?: unknown } | undefined)?.allow;
  if (rest['network'] !== undefined && !(Array.isArray(allow) && allow.every((host) => typeof host === 'string'))) {
    return "network: expected { allow: ['api.example.com'] }";
  }
  return undefined;
}

function checkApprovals(value: unknown): string | undefined {
  const form = "expected [{ decision: 'allow', tool: 'bash', command: 'npm test' }]";
  if (!Array.isArray(value)) return form;
  for (const [index, rule] of value.entries()) {
    const wrong = isRecord(rule) ? checkRule(rule) : form;
    if (wrong !== undefined) return `rule ${index + 1}: ${wrong}`;
  }
  return undefined;
}

function checkRule({ decision, ...rest }: Readonly<Record<string, unknown>>): string | undefined {
  if (!DECISIONS.includes(decision as string))
    return `decision: expected one of ${DECISIONS.join(', ')}, got ${shown(decision)}`;
  for (const [name, text] of Object.entries(rest)) {
    if (!RULE_FIELDS.includes(name)) return `unknown field '${name}'; use decision, ${RULE_FIELDS.join(', ')}`;
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      return `${name}: expected a string that is not empty`;
  }
  if (rest['command'] !== undefined && rest['path'] !== undefined) return 'expected command or path, not both';
  if (rest['command'] === undefined) return undefined;
  const { commands, isCertain } = readCommandLine(rest['command'] as string);
  if (isCertain && commands.length === 1) return undefined;
  return "command: expected the first words of one command, such as 'npm test'";
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : (JSON.stringify(value) ?? String(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

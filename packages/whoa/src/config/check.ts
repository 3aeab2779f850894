import { isAbsolute } from 'node:path';
import { readCommandLine } from '../approvals/command-line.ts';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from './config.ts';

/** What is wrong with the value of a field, and what to write; nothing if it is well. */
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

/** Throws at the first field that is wrong: which, and what to write. */
export function checkConfig(config: object, file: string): asserts config is WhoaConfig {
  for (const [name, value] of Object.entries(config)) {
    const isKnown = Object.hasOwn(FIELDS, name);
    const wrong = isKnown
      ? value === undefined
        ? undefined
        : FIELDS[name as keyof WhoaConfig](value)
      : `there is no such field; use ${Object.keys(FIELDS).join(', ')}`;
    if (wrong !== undefined) throw new UsageError(`${file}: ${name}: ${wrong}`, 'CONFIG');
  }
}

function checkText(example: string): Check {
  return (value) => (typeof value === 'string' && value !== '' ? undefined : `write a text, such as ${example}`);
}

function checkAgents(value: unknown): string | undefined {
  if (!isRecord(value)) return 'write { name: agent }, each made by createAgent or a function that answers one';
  const wrong = Object.entries(value).find(
    ([, agent]) => typeof agent !== 'function' && !(isRecord(agent) && typeof agent['run'] === 'function'),
  );
  return wrong && `'${wrong[0]}' is no agent; write createAgent({ … }) or a function that answers one`;
}

function checkStore(value: unknown): string | undefined {
  if (!isRecord(value)) return "write { backend: 'sqlite', file: '/…/tasks.db' }, or a store made by createTaskStore";
  if (typeof value['claim'] === 'function') return undefined;
  const { backend, file } = value;
  if (!BACKENDS.includes(backend as string)) return `backend: ${shown(backend)} is none of ${BACKENDS.join(', ')}`;
  const isRelative = backend === 'sqlite' && file !== undefined && !(typeof file === 'string' && isAbsolute(file));
  if (isRelative) return `file: write a whole path; ${shown(file)} would be another file in every folder`;
  return undefined;
}

function checkPolicy(value: unknown): string | undefined {
  if (POLICIES.includes(value as string)) return undefined;
  const why = value === 'steer' ? ' (every prompt of an editor has an answer of its own, so none can be steered)' : '';
  return `${shown(value)} is none of ${POLICIES.join(', ')}${why}`;
}

function checkLadder(value: unknown): string | undefined {
  if (PRESETS.includes(value as string)) return undefined;
  const form = `write ${PRESETS.map(shown).join(', ')} or { drainMs: 5_000, abortMs: 2_000 }`;
  if (!isRecord(value)) return form;
  for (const [name, ms] of Object.entries(value)) {
    if (name !== 'drainMs' && name !== 'abortMs') return `there is no '${name}'; ${form}`;
    if (!(typeof ms === 'number' && ms >= 0 && ms <= MAX_LEVEL_MS)) {
      return `${name}: write milliseconds from 0 to ${MAX_LEVEL_MS}, not ${shown(ms)}`;
    }
  }
  return undefined;
}

const SANDBOX_FIELDS = ['kind', 'readable', 'network', 'limits'];

function checkSandbox(value: unknown): string | undefined {
  const kinds = `write ${['workspace', 'read-only', 'none'].map(shown).join(', ')}`;
  const { kind = value, ...rest } = isRecord(value) ? value : {};
  if (!['workspace', 'read-only', 'none'].includes(kind as string))
    return `${kinds}, or { kind: 'workspace', network: … }`;
  const unknown = Object.keys(rest).find((name) => !SANDBOX_FIELDS.includes(name));
  if (unknown !== undefined) return `there is no '${unknown}'; use ${SANDBOX_FIELDS.join(', ')}`;
  const allow = (rest['network'] as { allow?: unknown } | undefined)?.allow;
  if (rest['network'] !== undefined && !(Array.isArray(allow) && allow.every((host) => typeof host === 'string'))) {
    return "network: write { allow: ['api.example.com'] }";
  }
  return undefined;
}

function checkApprovals(value: unknown): string | undefined {
  const form = "write [{ decision: 'allow', tool: 'bash', command: 'npm test' }]";
  if (!Array.isArray(value)) return form;
  for (const [index, rule] of value.entries()) {
    const wrong = isRecord(rule) ? checkRule(rule) : form;
    if (wrong !== undefined) return `rule ${index + 1}: ${wrong}`;
  }
  return undefined;
}

function checkRule({ decision, ...rest }: Readonly<Record<string, unknown>>): string | undefined {
  if (!DECISIONS.includes(decision as string)) return `decision: ${shown(decision)} is none of ${DECISIONS.join(', ')}`;
  for (const [name, text] of Object.entries(rest)) {
    if (!RULE_FIELDS.includes(name)) return `there is no '${name}'; use decision, ${RULE_FIELDS.join(', ')}`;
    if (text !== undefined && (typeof text !== 'string' || text === '')) return `${name}: write a text`;
  }
  if (rest['command'] !== undefined && rest['path'] !== undefined) return 'write command or path, not both';
  if (rest['command'] === undefined) return undefined;
  const { commands, isCertain } = readCommandLine(rest['command'] as string);
  if (isCertain && commands.length === 1) return undefined;
  return "command: write the first words of one command, such as 'npm test'";
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : (JSON.stringify(value) ?? String(value));
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

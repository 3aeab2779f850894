import { isAbsolute } from 'node:path';
import { SettingsError } from '@whoa/core';
import type { TaskStoreConfig } from '@whoa/tasks';
import { readStoreConfig } from '@whoa/tasks/internal';
import { z } from 'zod';
import { readCommandLine } from '../approvals/command-line.ts';
import { UsageError } from '../command.ts';
import type { WhoaConfig } from './config.ts';

const MAX_LEVEL_MS = 3_600_000;
const MAX_WAIT_MS = 30 * 86_400_000;
const AGENT = 'createAgent({ … }) or a function that returns one';
const ENGINE = "expected bullmq({ connection: 'redis://…' }) from '@whoa/bullmq'";
const CONTEXT = 'expected a whole number of tokens, such as 200_000, and at least 1000';
const LADDER = "expected 'graceful', 'now', 'kill' or { drainMs: 5_000, abortMs: 2_000 }";
const SANDBOX = "expected 'workspace', 'read-only', 'none', or { kind: 'workspace', network: … }";
const APPROVERS = 'expected (question, principal) => true or false';
const WEBHOOKS = "expected [{ url: 'https://…', secret: 'whsec_…' }]";
const RULES = "expected [{ decision: 'allow', tool: 'bash', command: 'npm test' }]";

const agents = z
  .looseObject({}, `expected { name: agent }, where each agent is ${AGENT}`)
  .superRefine((all, context) => {
    const wrong = Object.keys(all).find((name) => !isAgent(all[name]));
    if (wrong !== undefined) context.addIssue(`'${wrong}' is not an agent; write ${AGENT}`);
  });

const store = z.unknown().superRefine((given, context) => {
  if (typeof (given as { claim?: unknown } | null)?.claim === 'function') return;
  try {
    const config = readStoreConfig(given as TaskStoreConfig, 'store');
    if (config.backend !== 'sqlite' || config.file === undefined || isAbsolute(config.file)) return;
    // A relative one would depend on the current folder.
    context.addIssue(`expected an absolute path, such as 'sqlite:/srv/tasks.db', got ${shown(config.file)}`);
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    context.addIssue(error.message.replace(/^store(: |\.)/, ''));
  }
});

const policy = checkOneOf(['queue', 'replace', 'reject'], {
  steer: ' (an editor expects a response to every prompt, so prompts cannot be merged)',
});

const levelMs = z
  .custom((ms) => typeof ms === 'number' && ms >= 0 && ms <= MAX_LEVEL_MS, {
    error: ({ input }) => `expected milliseconds from 0 to ${MAX_LEVEL_MS}, got ${shown(input)}`,
  })
  .optional();

const stopMode = z.union([
  z.enum(['graceful', 'now', 'kill']),
  strict({ drainMs: levelMs, abortMs: levelMs }, LADDER, LADDER),
]);

const WAIT = 'expected { maxMs: 600_000 }, in milliseconds; also backoffMs and maxBackoffMs';
const waitMs = z.number(WAIT).positive(WAIT).max(MAX_WAIT_MS, WAIT);
const waitForProvider = strict({ maxMs: waitMs, backoffMs: waitMs.optional(), maxBackoffMs: waitMs.optional() }, WAIT);

const kind = z.enum(['workspace', 'read-only', 'none'], SANDBOX);
const network = z.custom(isAllowList, "expected { allow: ['api.example.com'] }").optional();
const sandbox = z.union([
  kind,
  strict({ kind, readable: z.unknown().optional(), network, limits: z.unknown().optional() }, SANDBOX),
]);

const text = z.string('expected a string that is not empty').min(1, 'expected a string that is not empty');
const command = text.refine(isOneCommand, "expected the first words of one command, such as 'npm test'");
const rule = strict(
  {
    decision: checkOneOf(['allow', 'ask', 'deny']),
    tool: text.optional(),
    command: command.optional(),
    path: text.optional(),
  },
  RULES,
).refine(
  (given) => given['command'] === undefined || given['path'] === undefined,
  'expected command or path, not both',
);

const WEBHOOK_EVENTS = ['success', 'failed', 'cancelled', 'question.asked', 'question.answered', 'question.closed'];
const webhook = strict(
  {
    url: text,
    secret: z.union([text, z.array(text, "expected 'whsec_…', or a list of the new and the old one")]),
    events: z.array(checkOneOf(WEBHOOK_EVENTS)).optional(),
    allowPrivateAddresses: z.boolean('expected true or false').optional(),
  },
  WEBHOOKS,
);

const CONFIG = strict(
  {
    model: example("'anthropic:claude-sonnet-4-5'"),
    contextTokens: z.int(CONTEXT).min(1_000, CONTEXT).max(100_000_000, CONTEXT).optional(),
    instructions: example("'Answer in French.'"),
    agents: agents.optional(),
    store: store.optional(),
    engine: z.custom((value) => typeof value === 'function', ENGINE).optional(),
    policy: policy.optional(),
    stopMode: stopMode.optional(),
    resume: checkOneOf(['any', 'same-version']).optional(),
    waitForProvider: waitForProvider.optional(),
    sandbox: sandbox.optional(),
    approvals: z.array(rule, RULES).optional(),
    approvers: z.custom((value) => typeof value === 'function', APPROVERS).optional(),
    starterMayAnswer: z.boolean('expected true or false').optional(),
    webhooks: z.array(webhook, WEBHOOKS).optional(),
    drainMs: levelMs,
  } satisfies Record<keyof WhoaConfig, z.ZodType>,
  'expected an object',
);

/** Throws an error that names the first invalid field and says what to write. */
export function checkConfig(given: object, file: string): void {
  const { error } = CONFIG.safeParse(given);
  if (error !== undefined) throw new UsageError([file, ...describe(error.issues[0]!)].join(': '), 'CONFIG');
}

/** Returns the path of a field, and what is wrong with it. */
function describe(issue: z.core.$ZodIssue): readonly string[] {
  const entry = issue.path[0] === 'approvals' ? 'rule' : 'entry';
  const path = issue.path.map((part) => (typeof part === 'number' ? `${entry} ${part + 1}` : String(part)));
  // The last alternative is the one with fields.
  const inner = issue.code === 'invalid_union' ? issue.errors.at(-1)?.[0] : undefined;
  return [...path, ...(inner === undefined ? [issue.message] : describe(inner))];
}

function strict<Shape extends z.core.$ZodLooseShape>(shape: Shape, form: string, advice?: string) {
  const what = advice ?? `use ${Object.keys(shape).join(', ')}`;
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? `unknown field '${issue.keys[0]}'; ${what}` : form),
  });
}

function example(form: string) {
  const words = `expected a string, such as ${form}`;
  return z.string(words).min(1, words).optional();
}

/** `why` explains why a value is not allowed. */
function checkOneOf<const Values extends readonly string[]>(
  values: Values,
  why: Readonly<Record<string, string>> = {},
) {
  return z.enum(values, {
    error: ({ input }) =>
      `expected one of ${values.join(', ')}, got ${shown(input)}${typeof input === 'string' ? (why[input] ?? '') : ''}`,
  });
}

function isAgent(value: unknown): boolean {
  return typeof value === 'function' || typeof (value as { run?: unknown } | null)?.run === 'function';
}

function isAllowList(value: unknown): boolean {
  const { allow } = (value ?? {}) as { allow?: unknown };
  return Array.isArray(allow) && allow.every((host) => typeof host === 'string');
}

function isOneCommand(line: string): boolean {
  const { commands, isCertain } = readCommandLine(line);
  return isCertain && commands.length === 1;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : (JSON.stringify(value) ?? String(value));
}

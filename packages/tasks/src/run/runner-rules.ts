import { POLICY_RULE, SOURCE_RULES, settings, worldRule } from '@whoa/core/internal';
import type { RunnerOptions, RunTaskOptions, ServeOptions } from './runner.ts';

const { boundedMs, callback, count, having, listOf, nonEmptyText, oneOf, required } = settings;

const DAY_MS = 86_400_000;
const beatMs = boundedMs({ max: DAY_MS });

/** What a task can run. */
const work = settings.rule(
  'an agent or a function',
  (value) =>
    typeof value === 'function' || settings.hasMethods(value, ['run']) || settings.hasMethods(value, ['runTask']),
);

/** The options of a runner. */
export const RUNNER_RULES: settings.Rules<RunnerOptions> = {
  store: required(having('a task store, as from createTaskStore', 'create', 'get', 'cancel')),
  agents: required((value, field) => {
    if (!settings.isObject(value) || Array.isArray(value))
      throw settings.unexpected(field, value, 'agents by their names, such as { assistant: agent }');
    for (const [name, one] of Object.entries(value)) work(one, `${field}.${name}`);
    return value;
  }),
  worker: nonEmptyText,
  leaseMs: beatMs,
  pollIntervalMs: beatMs,
  channel: having('an event channel', 'emit', 'on'),
  cancellationChecker: callback,
  cancellations: having('a cancellation store', 'register', 'setStatus', 'isCancelled', 'get', 'onCancel'),
  approvals: settings.rule('approvals', settings.isObject),
  resume: oneOf('any', 'same-version'),
  waitForProvider: settings.group<NonNullable<RunnerOptions['waitForProvider']>>({
    maxMs: required(boundedMs({ max: 30 * DAY_MS })),
    backoffMs: beatMs,
    maxBackoffMs: beatMs,
  }),
  background: having('a background', 'start', 'runInTask', 'run'),
  hooks: settings.hooks,
  world: worldRule,
};

export const WORK_RULES: settings.Rules<RunTaskOptions> = {
  policy: POLICY_RULE,
  wait: settings.flag,
  onEvent: callback,
  ...SOURCE_RULES,
};

export const SERVE_RULES: settings.Rules<ServeOptions> = {
  concurrency: count(),
  agents: listOf(nonEmptyText),
  offers: having('a source of offers', 'connect', 'next', 'settle'),
};

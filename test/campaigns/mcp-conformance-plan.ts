// The scenarios of the official MCP conformance kit that we run, and the checks that fail, with the reason.

/** The last stable version knows the 2025 protocols; the tasks and the 2026 protocol are in the next one. */
export const KITS: readonly string[] = ['0.1.16', '0.2.0-alpha.12'];

interface Part {
  readonly server: readonly string[];
  readonly client: readonly string[];
}

const BOTH: Part = {
  server: [
    'server-initialize',
    'ping',
    'tools-list',
    'tools-call-simple-text',
    'tools-call-error',
    'server-sse-polling',
    'server-sse-multiple-streams',
    'dns-rebinding-protection',
  ],
  client: ['initialize', 'tools_call', 'sse-retry'],
};

/**
 * The scenarios of each version for the features that we offer. We do not offer prompts, resources, completion, logging
 * and sampling.
 */
export const SCENARIOS: Readonly<Record<string, Part>> = {
  '0.1.16': BOTH,
  '0.2.0-alpha.12': {
    server: [
      ...BOTH.server,
      'server-session-lifecycle',
      'server-stateless',
      'caching',
      'http-header-validation',
      'tasks-lifecycle',
      'tasks-capability-negotiation',
      'tasks-wire-fields',
      'tasks-request-state-removal',
      'tasks-mrtr-input',
      'tasks-request-headers',
      'tasks-dispatch-and-envelope',
      'tasks-required-task-error',
      'input-required-result-unsupported-methods',
    ],
    client: [
      ...BOTH.client,
      'request-metadata',
      'http-standard-headers',
      'http-custom-headers',
      'http-invalid-tool-headers',
      'json-schema-ref-no-deref',
      'json-schema-2020-12-preservation',
    ],
  },
};

const ALL_ARE_TASKS = 'every agent is a task to a host that knows tasks; none answers such a host directly';
const NO_DIAGNOSTICS = 'needs a tool that only servers under test have';
const NOT_OFFERED = 'prompts and resources are not offered';

/** Checks that are expected to fail, and why. Any other failure, and any of these that passes, fails the campaign. */
export const EXPECTED: Readonly<Record<string, string>> = {
  'tasks-sync-tool-call': ALL_ARE_TASKS,
  'sep-2663-legacy-task-param-ignored': ALL_ARE_TASKS,
  'tasks-result-type-complete-on-non-task-responses': ALL_ARE_TASKS,
  'tasks-headers-tolerate-mcp-method-on-tools-call': ALL_ARE_TASKS,
  'sep-2663-tasks-get-status-failed':
    'an agent that failed is a result with isError; no agent ends in a protocol error',
  'tasks-mrtr-partial-fulfillment': 'the campaign has no agent that asks two questions in one turn',
  'sep-2663-server-returns-missing-capability-when-required':
    'no agent needs a host that knows tasks: others wait for its end',
  'sep-2575-server-rejects-undeclared-capability': NO_DIAGNOSTICS,
  'sep-2575-missing-capability-http-400': NO_DIAGNOSTICS,
  'sep-2575-http-server-no-independent-requests-on-stream': NO_DIAGNOSTICS,
  'sep-2575-server-no-log-without-loglevel': NO_DIAGNOSTICS,
  'sep-2549-prompts-list-caching-hints': NOT_OFFERED,
  'sep-2549-resources-list-caching-hints': NOT_OFFERED,
  'sep-2549-resources-templates-list-caching-hints': NOT_OFFERED,
};

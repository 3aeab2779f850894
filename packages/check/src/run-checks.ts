import type { Adapter, Connection, Features, Protocol } from './adapter.ts';
import { type Check, type GROUPS, NotOffered, type Rule, type Scenario, Violation } from './check.ts';
import { CHECKS } from './checks/checks.ts';
import { OURS } from './checks/rules.ts';
import { probe } from './detect-features.ts';
import { Unclear } from './drive-turn.ts';
import type { CheckHarness } from './harness/check-harness.ts';

/** What came of one check. */
export interface CheckResult {
  readonly id: string;
  readonly group: keyof typeof GROUPS;
  readonly title: string;
  readonly rule: Rule;
  /** `unclear`: the moment that the check is about was never reached. */
  readonly status: 'passed' | 'failed' | 'unclear' | 'not-applicable';
  /** What was observed, or why it does not apply. Empty for a pass without anything to add. */
  readonly detail: string;
  readonly ms: number;
}

/** What came of all checks. */
export interface CheckReport {
  /** The agent, as it introduces itself. */
  readonly agent: string;
  readonly protocol: Protocol;
  readonly results: readonly CheckResult[];
  readonly counts: Readonly<Record<CheckResult['status'], number>>;
}

/** Options of `runChecks`. */
export interface RunOptions {
  readonly adapter: Adapter;
  readonly harness: CheckHarness;
  /** The ids of checks, or their groups. Defaults to all. */
  readonly only?: readonly string[] | undefined;
  /** How long a cancel may take. Defaults to 5 s. */
  readonly settleMs?: number | undefined;
  readonly onResult?: ((result: CheckResult) => void) | undefined;
  /** Ends the run after the current wait; everything that it started is ended too. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs the checks one after another.
 *
 * @returns What came of each.
 * @throws Error when the agent cannot be checked at all: it does not start, or does not answer a plain prompt.
 */
export async function runChecks(options: RunOptions): Promise<CheckReport> {
  const { adapter, harness, only, onResult, signal } = options;
  const { protocol } = adapter;
  let current: Connection | undefined;
  const connect = async (): Promise<Connection> => {
    if (current !== undefined) return current;
    const connection = await adapter.connect(harness);
    if (harness.tool?.isShell === false) connection.offerProbe?.(harness.probe.mcpCommand);
    return (current = connection);
  };
  const disconnect = async (): Promise<void> => {
    const connection = current;
    current = undefined;
    await connection?.[Symbol.asyncDispose]();
  };
  try {
    const connection = await connect();
    const { agent } = connection;
    const features = { ...adapter.features, ...connection.features, ...(await probe(connection, harness)) };
    const results: CheckResult[] = [];
    for (const check of CHECKS) {
      const { id, group, title, rules } = check;
      if (only !== undefined && !only.includes(id) && !only.includes(group)) continue;
      signal?.throwIfAborted();
      const from = performance.now();
      const why = describeSkip(check, features, protocol);
      const end = why === undefined ? await runCheck(check, { ...options, features, connect }) : skipped(why);
      // An agent that failed may be in any state: the next check gets a new one.
      if (why === undefined && (check.endsConnection || end.status !== 'passed')) await disconnect();
      const rule = rules?.[protocol] ?? OURS;
      const result = { id, group, title, rule, ...end, ms: Math.round(performance.now() - from) };
      results.push(result);
      onResult?.(result);
    }
    return { agent, protocol, results, counts: count(results) };
  } finally {
    await disconnect();
  }
}

type CheckEnd = Pick<CheckResult, 'status' | 'detail'>;

interface CheckRun extends RunOptions {
  readonly features: Features;
  readonly connect: () => Promise<Connection>;
}

async function runCheck(check: Check, run: CheckRun): Promise<CheckEnd> {
  const { adapter, features, harness, signal, settleMs = 5_000 } = run;
  const notes: string[] = [];
  try {
    const connection = await run.connect();
    connection.answerQuestions('allow');
    const scenario: Scenario = {
      adapter,
      features,
      harness,
      connection,
      conversation: await connection.open(),
      settleMs,
      elsewhere: async () => ({ ...scenario, conversation: await connection.open() }),
      note: (text) => notes.push(text),
    };
    await Promise.race([check.run(scenario), aborted(signal)]);
    return { status: 'passed', detail: notes.join('; ') };
  } catch (error) {
    signal?.throwIfAborted();
    const detail = [(error as Error).message, ...notes].join('; ');
    if (error instanceof Violation) return { status: 'failed', detail };
    if (error instanceof NotOffered) return skipped(detail);
    const isUnclear = error instanceof Unclear;
    return { status: 'unclear', detail: isUnclear ? detail : `the check could not continue: ${detail}` };
  }
}

function skipped(why: string): CheckEnd {
  return { status: 'not-applicable', detail: why };
}

function describeSkip({ needs, only }: Check, features: Features, protocol: Protocol): string | undefined {
  if (only !== undefined && !only.includes(protocol)) return `only for ${only.join(', ')}`;
  const missing = needs.find((feature) => features[feature] !== true);
  if (missing === undefined) return undefined;
  return String(features[missing] ?? `the protocol or the agent offers no '${missing}'`);
}

function count(results: readonly CheckResult[]): CheckReport['counts'] {
  const counts = { passed: 0, failed: 0, unclear: 0, 'not-applicable': 0 };
  for (const { status } of results) counts[status]++;
  return counts;
}

function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason as Error);
    else signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

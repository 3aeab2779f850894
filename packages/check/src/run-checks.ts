import type { Adapter, Connection, Features, Protocol } from './adapter.ts';
import { type Check, type GROUPS, NotOffered, type Rule, Violation } from './check.ts';
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
  readonly only?: readonly string[];
  /** How long a cancel may take. Defaults to 5 s. */
  readonly settleMs?: number;
  readonly onResult?: (result: CheckResult) => void;
  /** Ends the run after the current wait; everything that it started is ended too. */
  readonly signal?: AbortSignal;
}

/**
 * Runs the checks one after another.
 *
 * @returns What came of each.
 * @throws Error when the agent cannot be checked at all: it does not start, or does not answer a plain prompt.
 */
export async function runChecks(options: RunOptions): Promise<CheckReport> {
  const run = new Run(options);
  try {
    return await run.all();
  } finally {
    await run.disconnect();
  }
}

class Run {
  readonly #options: RunOptions;
  #connection: Connection | undefined;

  constructor(options: RunOptions) {
    this.#options = options;
  }

  async all(): Promise<CheckReport> {
    const { adapter, harness, only, onResult, signal } = this.#options;
    const connection = await this.#connect();
    const { agent } = connection;
    const features = { ...adapter.features, ...connection.features, ...(await probe(connection, harness)) };
    const results: CheckResult[] = [];
    for (const check of CHECKS) {
      if (only !== undefined && !only.includes(check.id) && !only.includes(check.group)) continue;
      signal?.throwIfAborted();
      const result = await this.#one(check, features);
      results.push(result);
      onResult?.(result);
    }
    return { agent, protocol: adapter.protocol, results, counts: count(results) };
  }

  async disconnect(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.[Symbol.asyncDispose]();
  }

  async #connect(): Promise<Connection> {
    const { adapter, harness } = this.#options;
    if (this.#connection !== undefined) return this.#connection;
    const connection = await adapter.connect(harness);
    if (harness.tool?.isShell === false) connection.offerProbe?.(harness.probe.mcpCommand);
    this.#connection = connection;
    return connection;
  }

  async #one(check: Check, features: Features): Promise<CheckResult> {
    const { protocol } = this.#options.adapter;
    const { id, group, title, rules } = check;
    const about = { id, group, title, rule: rules?.[protocol] ?? OURS };
    const why = describeSkip(check, features, protocol);
    if (why !== undefined) return { ...about, status: 'not-applicable', detail: why, ms: 0 };
    const from = performance.now();
    const { status, detail } = await this.#runCheck(check, features);
    // An agent that failed may be in any state: the next check gets a new one.
    if (check.endsConnection || status !== 'passed') await this.disconnect();
    return { ...about, status, detail, ms: Math.round(performance.now() - from) };
  }

  async #runCheck(check: Check, features: Features): Promise<Pick<CheckResult, 'status' | 'detail'>> {
    const { adapter, harness, signal, settleMs = 5_000 } = this.#options;
    const notes: string[] = [];
    try {
      const connection = await this.#connect();
      connection.answerQuestions('allow');
      const conversation = await connection.open();
      const note = (text: string): unknown => notes.push(text);
      const scenario = { adapter, features, harness, connection, conversation, settleMs, note };
      await Promise.race([check.run(scenario), aborted(signal)]);
      return { status: 'passed', detail: notes.join('; ') };
    } catch (error) {
      signal?.throwIfAborted();
      const detail = [(error as Error).message, ...notes].join('; ');
      if (error instanceof Violation) return { status: 'failed', detail: detail };
      if (error instanceof NotOffered) return { status: 'not-applicable', detail: detail };
      const isUnclear = error instanceof Unclear;
      return { status: 'unclear', detail: isUnclear ? detail : `the check could not continue: ${detail}` };
    }
  }
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
    if (signal === undefined) return;
    if (signal.aborted) reject(signal.reason as Error);
    else signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

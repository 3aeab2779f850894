import { readFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import {
  type Adapter,
  type CheckResult,
  createA2aAdapter,
  createAcpAdapter,
  createChatAdapter,
  createCheckHarness,
  runChecks,
} from '@whoa/check';
import { install, settleIn } from './install.ts';
import type { Location, Subject } from './subject.ts';

/** How long a cancel may take: twice the kit's default, so that a busy machine does not fail a subject. */
const SETTLE_MS = 10_000;
/** A busy machine can cause timeouts and unclear results, so those checks are retried alone with this limit. */
const PATIENT_MS = 60_000;
const LATE = /had not ended|had no answer|still running \d+ s after the cancel/;
const needsRetry = ({ id, status, detail }: CheckResult): boolean =>
  status === 'unclear' || (status === 'failed' && (LATE.test(detail) || id.startsWith('latency-')));
/** A subject that takes longer is stuck. */
const MAX_RUN_MS = 90 * 60_000;

/** One run of the kit on a subject. */
export interface Run {
  /** As the agent introduces itself. */
  readonly agent: string;
  readonly results: readonly Pick<CheckResult, 'id' | 'status' | 'detail'>[];
}

/** Installs a subject if needed, starts it with a separate home, and runs all checks on it. */
export async function runSubject(
  subject: Subject,
  { only, isProxied = false }: { readonly only?: readonly string[]; readonly isProxied?: boolean } = {},
): Promise<Run> {
  const installed = install(subject);
  forgetSettings();
  await using harness = await createCheckHarness();
  const location = settleIn(subject, { installed, provider: harness.provider });
  await using adapter = createAdapter(subject, { ...location, isProxied });
  const options = { adapter, harness, signal: AbortSignal.timeout(MAX_RUN_MS), onResult: print };
  const report = await runChecks({ ...options, settleMs: SETTLE_MS, ...(only !== undefined && { only }) });
  const retried = report.results.filter(needsRetry).map(({ id }) => id);
  const again =
    retried.length === 0 ? [] : (await runChecks({ ...options, settleMs: PATIENT_MS, only: retried })).results;
  const results = report.results.map((result) => ({ ...(again.find(({ id }) => id === result.id) ?? result) }));
  return { agent: report.agent, results: results.map(keep) };
}

function print({ id, status, detail, ms }: CheckResult): void {
  console.log(`  ${status} ${id} (${ms} ms) ${detail}`);
}

/**
 * Removes everything from the environment that could affect a subject: keys, and the settings of whoever runs the
 * campaign.
 */
function forgetSettings(): void {
  const kept = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR'];
  for (const name of Object.keys(process.env)) if (!kept.includes(name)) delete process.env[name];
}

function keep({ id, status, detail }: CheckResult): Run['results'][number] {
  const isBusy = (loadavg()[0] ?? 0) > availableParallelism();
  if (id.startsWith('latency-') && status === 'failed' && isBusy)
    return { id, status: 'unclear', detail: `not measured: the machine was busy (${detail})` };
  return { id, status, detail };
}

/** What the proxy reports about an agent whose processes are suspended. */
export interface WedgeReport {
  /** How long the cancel of its prompt took. */
  readonly stopMs: number;
  /** How its session was restored in the next process. */
  readonly mode: string;
  /** Whether the model then saw the earlier prompt. */
  readonly remembers: boolean;
}

/** Suspends all processes of an agent (SIGSTOP) mid-reply, cancels, and sends another prompt. */
export async function wedgeSubject(subject: Subject): Promise<WedgeReport> {
  const installed = install(subject);
  forgetSettings();
  await using harness = await createCheckHarness();
  const location = settleIn(subject, { installed, provider: harness.provider });
  const log = join(location.home, 'proxy.jsonl');
  await using adapter = createAdapter(subject, { ...location, isProxied: true, log });
  await using connection = await adapter.connect(harness);
  const conversation = await connection.open();
  const [first, second, third] = [harness.makeKey(), harness.makeKey(), harness.makeKey()];
  const say = (key: string, action: string) =>
    conversation.start(`Do this check and nothing else: check-${key}-${action}`);
  await say(first, 'reply').ended;
  const stuck = say(second, 'stream');
  await stuck.waitFor(({ what }) => what === 'text');
  const { child } = connection.process as unknown as { readonly child: { readonly pid: number } };
  for (const pid of findDescendants(child.pid)) process.kill(pid, 'SIGSTOP');
  const startedAt = performance.now();
  await conversation.cancel();
  const { kind } = await stuck.ended;
  const stopMs = Math.round(performance.now() - startedAt);
  if (kind !== 'cancelled') throw new Error(`the prompt ended as '${kind}'`);
  const next = await say(third, 'reply').ended;
  if (next.kind !== 'completed') throw new Error(`the next prompt ended as '${next.kind}' (${next.detail})`);
  const [request] = harness.requestsFor(third);
  const mode = /"type":"restore".*"mode":"(\w+)"/.exec(readFileSync(log, 'utf8'))?.[1] ?? 'not restarted';
  return { stopMs, mode, remembers: JSON.stringify(request?.body).includes(first) };
}

/** All processes below one, but for the watchdog of our containment. */
function findDescendants(pid: number): readonly number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
  const children = text.trim().split(' ').filter(Boolean).map(Number);
  const isOurs = (one: number): boolean => readFileSync(`/proc/${one}/cmdline`, 'latin1').includes('watchdog');
  return children.flatMap((one) => (isOurs(one) ? [] : [one, ...findDescendants(one)]));
}

const WHOA = join(import.meta.dirname, '../../../packages/whoa/bin/whoa.js');

function createAdapter(
  subject: Subject,
  location: Location & { readonly isProxied: boolean; readonly log?: string },
): Adapter {
  const log = location.log === undefined ? [] : ['--log', location.log];
  const proxy = location.isProxied ? [process.execPath, WHOA, 'acp', ...log, '--'] : [];
  const command = {
    command: [...proxy, ...subject.command(location)],
    env: { ...toHomeVariables(location), ...subject.env?.(location) },
  };
  const { protocol, url } = subject;
  if (url === undefined) return createAcpAdapter(command);
  return protocol === 'a2a' ? createA2aAdapter({ url, command }) : createChatAdapter({ url, command });
}

function toHomeVariables({ home }: Location): Record<string, string> {
  return {
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    XDG_CACHE_HOME: join(home, '.cache'),
  };
}

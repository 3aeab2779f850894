import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import {
  type Adapter,
  type CheckResult,
  createA2aAdapter,
  createAcpAdapter,
  createChatAdapter,
  createStage,
  runChecks,
} from '@whoa/check';
import { install, settleIn } from './install.ts';
import type { Location, Subject } from './subject.ts';

/** How long a cancel may take. Twice what the kit allows by default: the campaign must not fail others for a busy machine. */
const SETTLE_MS = 10_000;
/** What came too late gets another try with this time. */
const PATIENT_MS = 60_000;
const LATE = /had not ended|had no answer|still running \d+ s after the cancel/;
/** A subject that takes longer is stuck. */
const MAX_RUN_MS = 90 * 60_000;

/** One run of the kit on a subject. */
export interface Run {
  /** As the agent introduces itself. */
  readonly agent: string;
  readonly results: readonly Pick<CheckResult, 'id' | 'status' | 'said'>[];
}

/** Installs a subject if needed, starts it with a home of its own, and runs all checks on it. */
export async function runSubject(subject: Subject, only?: readonly string[]): Promise<Run> {
  const installed = install(subject);
  forgetSettings();
  await using stage = await createStage();
  const location = settleIn(subject, { installed, provider: stage.provider });
  await using adapter = createAdapter(subject, location);
  const options = { adapter, stage, signal: AbortSignal.timeout(MAX_RUN_MS), onResult: print };
  const report = await runChecks({ ...options, settleMs: SETTLE_MS, ...(only !== undefined && { only }) });
  const late = report.results.filter(({ status, said }) => status === 'failed' && LATE.test(said)).map(({ id }) => id);
  const again = late.length === 0 ? [] : (await runChecks({ ...options, settleMs: PATIENT_MS, only: late })).results;
  const results = report.results.map((result) => ({ ...(again.find(({ id }) => id === result.id) ?? result) }));
  return { agent: report.agent, results: results.map(keep) };
}

function print({ id, status, said, ms }: CheckResult): void {
  console.log(`  ${status} ${id} (${ms} ms) ${said}`);
}

/** Leaves nothing in the environment that could change how a subject works: keys, or settings of who runs the campaign. */
function forgetSettings(): void {
  const kept = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR'];
  for (const name of Object.keys(process.env)) if (!kept.includes(name)) delete process.env[name];
}

function keep({ id, status, said }: CheckResult): Run['results'][number] {
  const isBusy = (loadavg()[0] ?? 0) > availableParallelism();
  if (id.startsWith('latency-') && status === 'failed' && isBusy)
    return { id, status: 'unclear', said: `not measured: the machine was busy (${said})` };
  return { id, status, said };
}

function createAdapter(subject: Subject, location: Location): Adapter {
  const command = { command: subject.command(location), env: { ...homeOf(location), ...subject.env?.(location) } };
  const { protocol, url } = subject;
  if (url === undefined) return createAcpAdapter(command);
  return protocol === 'a2a' ? createA2aAdapter({ url, command }) : createChatAdapter({ url, command });
}

function homeOf({ home }: Location): Record<string, string> {
  return {
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    XDG_DATA_HOME: join(home, '.local/share'),
    XDG_STATE_HOME: join(home, '.local/state'),
    XDG_CACHE_HOME: join(home, '.cache'),
  };
}

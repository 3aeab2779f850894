import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { type Adapter, type CheckResult, createAcpAdapter, createStage, runChecks } from '@whoa/check';
import { install, settleIn } from './install.ts';
import type { Location, Subject } from './subject.ts';

/** How long a cancel may take. Twice what the kit allows by default: the campaign must not fail others for a busy machine. */
const SETTLE_MS = 10_000;
/** A subject that takes longer is stuck. */
const MAX_RUN_MS = 30 * 60_000;

/** One run of the kit on a subject. */
export interface Run {
  /** As the agent introduces itself. */
  readonly agent: string;
  readonly results: readonly Pick<CheckResult, 'id' | 'status' | 'said' | 'rule'>[];
}

/** Installs a subject if needed, starts it with a home of its own, and runs all checks on it. */
export async function runSubject(subject: Subject, only?: readonly string[]): Promise<Run> {
  const installed = install(subject);
  forgetSettings();
  await using stage = await createStage();
  const location = settleIn(subject, { installed, provider: stage.provider });
  await using adapter = createAdapter(subject, location);
  const report = await runChecks({
    adapter,
    stage,
    settleMs: SETTLE_MS,
    signal: AbortSignal.timeout(MAX_RUN_MS),
    ...(only !== undefined && { only }),
    onResult: ({ id, status, said, ms }) => console.log(`  ${status} ${id} (${ms} ms) ${said}`),
  });
  return { agent: report.agent, results: report.results.map(keep) };
}

/** Leaves nothing in the environment that could change how a subject works: keys, or settings of who runs the campaign. */
function forgetSettings(): void {
  const kept = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR'];
  for (const name of Object.keys(process.env)) if (!kept.includes(name)) delete process.env[name];
}

function keep({ id, status, said, rule }: CheckResult): Run['results'][number] {
  const isBusy = (loadavg()[0] ?? 0) > availableParallelism();
  if (id.startsWith('latency-') && status === 'failed' && isBusy)
    return { id, status: 'unclear', said: `not measured: the machine was busy (${said})`, rule };
  return { id, status, said, rule };
}

function createAdapter(subject: Subject, location: Location): Adapter {
  const command = { command: subject.command(location), env: { ...homeOf(location), ...subject.env?.(location) } };
  return createAcpAdapter(command);
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

import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** The resources that a process holds. Each entry names one. */
export interface ResourceList {
  /** Processes below this one (Linux). */
  readonly processes: readonly string[];
  /** Open files, pipes and sockets (Linux). */
  readonly descriptors: readonly string[];
  /** Timers, handles and requests that keep the event loop busy. */
  readonly resources: readonly string[];
  /** Temporary files and folders of this process: `whoa-…` with its pid in the name. */
  readonly temps: readonly string[];
}

/**
 * Records what this process holds now: processes, descriptors, resources and temporary files.
 *
 * @returns The list.
 */
export function listResources(): ResourceList {
  return {
    processes: listProcesses(),
    descriptors: listDescriptors(),
    resources: process.getActiveResourcesInfo().map((type) => `resource ${type}`),
    temps: readdirSync(tmpdir())
      .filter((name) => name.startsWith('whoa-') && name.split('-').includes(String(process.pid)))
      .map((name) => `temp file ${name}`),
  };
}

/** Lists resources that exist now but did not before. */
export function diffResources(before: ResourceList): string[] {
  const now = listResources();
  const kinds = ['processes', 'descriptors', 'resources', 'temps'] as const;
  return kinds.flatMap((kind) => surplus(before[kind], now[kind]));
}

/**
 * Waits until nothing is held that was not held before.
 *
 * @returns The resources that are still held after the timeout; empty if there are none.
 */
export async function waitForNoNewResources(before: ResourceList, withinMs: number): Promise<string[]> {
  const end = performance.now() + withinMs;
  for (;;) {
    // Don't use a timer: it would be counted.
    await new Promise((resolve) => setImmediate(resolve));
    const left = diffResources(before);
    if (left.length === 0 || performance.now() > end) return left;
  }
}

function surplus(before: readonly string[], now: readonly string[]): string[] {
  const known = new Map<string, number>();
  for (const name of before) known.set(name, (known.get(name) ?? 0) + 1);
  return now.filter((name) => {
    const left = known.get(name) ?? 0;
    known.set(name, left - 1);
    return left <= 0;
  });
}

function listDescriptors(): string[] {
  return readEntries('/proc/self/fd').flatMap((fd) => {
    const target = attempt(() => readlinkSync(`/proc/self/fd/${fd}`));
    return target === undefined || target.startsWith('anon_inode:') ? [] : [`descriptor ${target}`];
  });
}

function listProcesses(): string[] {
  const children = new Map<number, { pid: number; name: string }[]>();
  for (const entry of readEntries('/proc')) {
    const stat = /^\d+$/.test(entry) ? attempt(() => readFileSync(`/proc/${entry}/stat`, 'utf8')) : undefined;
    const [, pid, name = '', parent] = /^(\d+) \((.*)\) \S (\d+)/s.exec(stat ?? '') ?? [];
    if (pid === undefined) continue;
    const siblings = children.get(Number(parent)) ?? [];
    children.set(Number(parent), [...siblings, { pid: Number(pid), name }]);
  }
  const found: string[] = [];
  const open = [process.pid];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    for (const child of children.get(pid) ?? []) {
      found.push(`process ${child.pid} (${child.name})`);
      open.push(child.pid);
    }
  }
  return found;
}

function readEntries(folder: string): string[] {
  return attempt(() => readdirSync(folder)) ?? [];
}

function attempt<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

import { randomInt } from 'node:crypto';
import { readProcFile } from './proc-file.ts';

/**
 * The tags of a host's processes: an environment variable, and a limit on file locks. Children inherit both. Linux has ignored
 * that limit since 2.4, but it survives `env -i`, `setsid`, daemonising and closed descriptors, and only root can raise it.
 */
export interface HostTag {
  /** 31 random bits. */
  readonly host: number;
  /** Whether the limit can be used. Not if an outer host already uses it for this process. */
  readonly limits: boolean;
}

/** The tag of a command: `host.number`. The host alone stands for all its commands. */
export type TagKey = string;

const PREFIX = 'WHOA_CONTAINED_';
const NEEDLE = Buffer.from(`\0${PREFIX}`);
const LOCKS = Buffer.from('Max file locks');
const MIN_HOST = 2 ** 30;
const MARK = 'ulimit -x "$1" 2>/dev/null || ulimit -w "$1" 2>/dev/null; shift; exec "$@"';

export function createHostTag(): HostTag {
  return { host: randomInt(MIN_HOST, MIN_HOST * 2), limits: hasNoLockLimit() };
}

function hasNoLockLimit(): boolean {
  const limits = readProcFile('/proc/self/limits');
  return limits === undefined || parseLockLimit(limits) === undefined;
}

export function tagKey(tag: HostTag, command?: number): TagKey {
  return command === undefined ? `${tag.host}` : `${tag.host}.${command}`;
}

/** The tags of this process from an outer host. Keep them on all commands: our processes belong to the outer host too. */
export function outerTags(): Record<string, string> {
  const tags = Object.entries(process.env).filter(([name]) => name.startsWith(PREFIX));
  return Object.fromEntries(tags) as Record<string, string>;
}

/** The environment of a tagged command. */
export function tagEnvironment(
  env: Readonly<Record<string, string>>,
  tag: HostTag,
  command: number,
): NodeJS.ProcessEnv {
  return { ...env, ...outerTags(), [`${PREFIX}${tag.host}`]: `${command}` };
}

/** Runs `argv` with the limit, by a shell script. Shells call the option `-x` or `-w`. */
export function tagArguments(
  argv: readonly string[],
  { tag, command }: { tag: HostTag; command: number },
): readonly string[] {
  if (!tag.limits) return argv;
  const limit = (BigInt(tag.host) << 32n) + BigInt(command);
  // The first argument is the name in the shell's error messages.
  return ['/bin/sh', '-c', MARK, 'whoa', `${limit}`, ...argv];
}

/** The tags of a process: those of its commands and of their hosts. */
export interface ProcessTags {
  readonly keys: readonly TagKey[];
  /** Whether it has an environment without a tag: nothing gives it one later. */
  readonly isForeign: boolean;
}

/** Returns `undefined` if the process has ended, or is being replaced by another program: then its memory is empty. */
export function readTags(pid: number | 'self'): ProcessTags | undefined {
  const limits = readProcFile(`/proc/${pid}/limits`);
  if (limits === undefined) return undefined;
  const keys: TagKey[] = [];
  const limit = parseLockLimit(limits);
  if (limit !== undefined && limit >> 62n === 1n) {
    const host = `${limit >> 32n}`;
    keys.push(`${host}.${limit & 0xffff_ffffn}`, host);
  }
  const environment = readProcFile(`/proc/${pid}/environ`);
  for (const [host, command] of findEnvironmentTags(environment)) keys.push(`${host}.${command}`, host);
  if (keys.length === 0 && environment?.length === 0 && readProcFile(`/proc/${pid}/cmdline`)?.length === 0)
    return undefined;
  return { keys, isForeign: keys.length === 0 && environment !== undefined && environment.length > 0 };
}

/** The limit in `/proc/PID/limits`; `undefined` if there is none. */
function parseLockLimit(limits: Buffer): bigint | undefined {
  const at = limits.indexOf(LOCKS);
  if (at < 0) return undefined;
  const digits = /^\s*(\d+)/.exec(limits.toString('latin1', at + LOCKS.length, at + 64))?.[1];
  return digits === undefined ? undefined : BigInt(digits);
}

function findEnvironmentTags(bytes: Buffer | undefined): [host: string, command: string][] {
  const tags: [string, string][] = [];
  if (bytes === undefined) return tags;
  // The first variable is not preceded by a NUL byte.
  const first = bytes.toString('latin1', 0, PREFIX.length) === PREFIX ? 0 : -1;
  for (let at = first >= 0 ? first : bytes.indexOf(NEEDLE); at >= 0; at = bytes.indexOf(NEEDLE, at + 1)) {
    const text = bytes.toString('latin1', at, at + PREFIX.length + 40);
    const found = /^\0?WHOA_CONTAINED_(\d+)=(\d+)(?:\0|$)/.exec(text);
    if (found !== null) tags.push([found[1]!, found[2]!]);
  }
  return tags;
}

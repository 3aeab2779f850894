import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One way in which processes get away. */
export interface EscapeKind {
  readonly name: string;
  /** A bash command; everything it starts has `mark` among its arguments. */
  readonly command: (mark: string) => string;
  /** How many processes have the mark once it is up. */
  readonly processes: number;
  /** Words that must be among their arguments, where on its way up it has as many processes as it will have. */
  readonly upWith?: readonly string[];
  /** Programs that it needs. */
  readonly needs?: string;
  /** Only root can do it. */
  readonly needsRoot?: boolean;
  /** The shell itself returns; its leftovers must be gone by then. */
  readonly returns?: boolean;
  /** A process that sheds every tag on purpose escapes a containment by tags. */
  readonly shedsEveryTag?: boolean;
  /** A process that writes itself into another cgroup on purpose escapes a containment by cgroups. */
  readonly leavesCgroup?: boolean;
}

const perlEscape = (kind: string, mark: string): string =>
  `perl ${join(import.meta.dirname, 'escape.pl')} ${kind} ${mark}`;
let folder: string | undefined;

function compile(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'whoa-escape-'));
    const source = join(import.meta.dirname, 'escape.c');
    const { status, stderr } = spawnSync('cc', ['-O2', '-pthread', '-o', join(made, 'escape'), source]);
    if (status !== 0) throw new Error(`process-escapes: cc: ${stderr.toString()}`);
    process.once('exit', () => rmSync(made, { recursive: true }));
    folder = made;
  }
  return join(folder, 'escape');
}

/** An escape written in C, after which the shell sleeps. */
const compiled = (name: string, kind: string, more: Partial<EscapeKind> = {}): EscapeKind => ({
  name,
  // The links of a chain are gone before one can count them.
  processes: 2,
  needs: 'cc',
  command: (mark) => `${compile()} ${kind} ${mark}; ${sleep(mark)}; :`,
  ...more,
});

// The mark is a number of seconds, so that `sleep` also has it.
const sleep = (mark: string): string => `sleep ${mark}`;
const quiet = '>/dev/null 2>&1 </dev/null';
const cgroups = "m=$(awk '/ - cgroup2 /{print $5; exit}' /proc/self/mountinfo)";

export const ESCAPES: readonly EscapeKind[] = [
  { name: 'plain child', processes: 1, command: sleep },
  {
    name: 'background children',
    processes: 5,
    command: (mark) => `${sleep(mark)} & ${sleep(mark)} & (${sleep(mark)} & ${sleep(mark)}) & wait; : ${mark}`,
  },
  {
    name: 'nohup & disown',
    processes: 3,
    command: (mark) => `nohup ${sleep(mark)} ${quiet} & disown -a; ${sleep(mark)}; :`,
  },
  { name: 'setsid', processes: 3, command: (mark) => `setsid ${sleep(mark)} ${quiet} & ${sleep(mark)}; :` },
  {
    name: 'setsid nohup & disown, shell gone',
    processes: 1,
    returns: true,
    command: (mark) => `setsid nohup ${sleep(mark)} ${quiet} & disown; exit 0`,
  },
  { name: 'double-fork daemon', processes: 3, command: (mark) => `${perlEscape('daemon', mark)}; ${sleep(mark)}; :` },
  { name: 'ignores TERM', processes: 2, command: (mark) => `trap '' TERM INT HUP; while :; do ${sleep(mark)}; done` },
  { name: 'respawner', processes: 8, command: (mark) => `${perlEscape('hydra', mark)}; :` },
  // Its links are gone before one can count them; once `sleep` runs they hop.
  { name: 'session hopper', processes: 2, command: (mark) => `${perlEscape('hop', mark)}; ${sleep(mark)}; :` },
  {
    name: 'stdout held open, shell gone',
    processes: 1,
    returns: true,
    command: (mark) => `${sleep(mark)} & echo started; exit 0`,
  },
  {
    name: 'SIGSTOPped',
    processes: 2,
    command: (mark) => `${sleep(mark)} & kill -STOP $!; kill -STOP $$; wait; : ${mark}`,
  },
  { name: 'env -i setsid', processes: 2, command: (mark) => `env -i setsid ${sleep(mark)} & wait; :` },
  {
    name: 'env -i setsid, orphaned',
    processes: 3,
    command: (mark) => `(env -i setsid ${sleep(mark)} ${quiet} &); ${sleep(mark)}; :`,
  },
  { name: 'stealth daemon', processes: 3, command: (mark) => `${perlEscape('stealth', mark)}; ${sleep(mark)}; :` },
  {
    name: 'sheds every tag on purpose',
    processes: 3,
    // The daemon is detached once it idles, and the shell has continued once it sleeps.
    upWith: ['idle', 'sleep'],
    shedsEveryTag: true,
    command: (mark) => `(ulimit -x 7; exec env -i setsid ${perlEscape('stealth', mark)}); ${sleep(mark)}; :`,
  },
  { name: 'timeout 300 CMD | tail', processes: 3, command: (mark) => `timeout 300 ${sleep(mark)} | tail -n 1` },
  { name: 'set -m job', processes: 3, command: (mark) => `set -m; ${sleep(mark)} & ${sleep(mark)}; :` },
  {
    name: 'Python, new session',
    processes: 3,
    needs: 'python3',
    command: (mark) =>
      `python3 -c "import subprocess; subprocess.Popen(['sleep', '${mark}'], start_new_session=True)"; ${sleep(mark)}; :`,
  },
  {
    name: 'Node, detached child',
    processes: 3,
    command: (mark) =>
      `${process.execPath} -e "require('child_process').spawn('sleep', ['${mark}'], { detached: true, stdio: 'ignore' }).unref()"; ${sleep(mark)}; :`,
  },
  {
    name: 'tmux server',
    processes: 3,
    needs: 'tmux',
    command: (mark) => `TERM=xterm tmux -L w${mark.replace('.', '')} new -d '${sleep(mark)}'; ${sleep(mark)}; :`,
  },
  {
    name: 'escaped child that keeps printing',
    processes: 2,
    command: (mark) => `setsid sh -c 'while :; do echo tick; sleep 0.01; done' ${mark} & wait; :`,
  },
  {
    name: 'daemon that guards its memory',
    processes: 3,
    command: (mark) => `${perlEscape('undumpable', mark)}; ${sleep(mark)}; :`,
  },
  { name: 'takes in orphans', processes: 5, command: (mark) => `${perlEscape('subreaper', mark)}; :` },
  { name: 'held by a tracer', processes: 4, command: (mark) => `${perlEscape('traced', mark)}; :` },
  { name: 'burst of forty', processes: 42, command: (mark) => `${perlEscape('burst', mark)}; :` },
  {
    name: 'starts another when asked to stop',
    processes: 2,
    command: (mark) => `trap '(env -i setsid ${sleep(mark)} ${quiet} &)' TERM; ${sleep(mark)} & wait; wait; :`,
  },
  {
    name: 'namespaces of its own',
    processes: 3,
    needs: 'unshare',
    needsRoot: true,
    command: (mark) => `(unshare --pid --fork --mount setsid ${sleep(mark)} ${quiet} &); ${sleep(mark)}; :`,
  },
  {
    name: 'pid chosen by root',
    processes: 3,
    needsRoot: true,
    command: (mark) => `${perlEscape('chosen', mark)}; ${sleep(mark)}; :`,
  },
  {
    name: "enters its parent's cgroup",
    processes: 3,
    needsRoot: true,
    leavesCgroup: true,
    command: (mark) =>
      `${cgroups}; p=$(sed -n 's/^0:://p' /proc/self/cgroup); (echo 0 > $m\${p%/*/*}/cgroup.procs; exec setsid ${sleep(mark)} ${quiet}) & ${sleep(mark)}; :`,
  },
  {
    name: 'mounts the cgroups itself and leaves',
    processes: 3,
    needsRoot: true,
    leavesCgroup: true,
    command: (mark) =>
      `(exec unshare --mount sh -c 'mount -t cgroup2 none /mnt; echo 0 > /mnt/cgroup.procs; exec setsid sleep "$@"' sh ${mark} ${quiet}) & ${sleep(mark)}; :`,
  },
  {
    name: 'enters a foreign cgroup',
    processes: 3,
    needsRoot: true,
    leavesCgroup: true,
    command: (mark) =>
      `${cgroups}; mkdir -p $m/whoa-foreign; (echo 0 > $m/whoa-foreign/cgroup.procs; exec setsid ${sleep(mark)} ${quiet}) & ${sleep(mark)}; :`,
  },
  {
    name: 'mounts read-only cgroups again and leaves',
    processes: 3,
    needsRoot: true,
    leavesCgroup: true,
    command: (mark) =>
      `${cgroups}; (exec unshare --mount sh -c 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; mount -o remount,bind,rw "$1"; echo 0 > "$1/cgroup.procs"; shift; exec setsid sleep "$@"' sh $m ${mark} ${quiet}) & ${sleep(mark)}; :`,
  },
  compiled('chain of sessions', 'hop'),
  compiled('six chains of sessions', 'hop-six'),
  compiled('four fast chains of sessions', 'hop-fast'),
  compiled('storm of daemons', 'storm', { processes: 3 }),
  compiled('chain of vfork and exec', 'vfork'),
  compiled('threads that fork', 'threads', { processes: 3 }),
  compiled('daemon that starts itself without an environment', 'no-environment', { upWith: ['idle', 'sleep'] }),
  compiled('low pid chosen by root', 'low', { processes: 3, needsRoot: true }),
  compiled('chain of low pids chosen by root', 'hop-low', { needsRoot: true }),
  // It may be stopped while it still takes pids: a busy machine needs seconds for all of them.
  compiled('takes pids without a fork', 'wrap', { processes: 3, upWith: ['sleep'] }),
];

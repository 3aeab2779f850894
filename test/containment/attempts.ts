/** One way out of a sandbox, tried inside. It prints ESCAPED if it worked; canaries outside show the rest. */
export interface Attempt {
  readonly name: string;
  /**
   * A bash script. `$OUT` is a folder outside with a secret, `$HOST_PID` a process outside, `$PORT` a TCP and UDP port
   * on its loopback, `$SOCKET` and `$ABSTRACT` its sockets, `$PROGRAMS` the folder in /tmp that has Node, if one does;
   * `sys NAME ARGS` makes a system call and prints ESCAPED if it returns 0 or more.
   */
  readonly script: string;
  /** Linux does not hold root to it. */
  readonly isForUsers?: boolean;
}

/** Prints ESCAPED if the command works. */
const works = (command: string): string => `{ ${command}; } 2>/dev/null && echo ESCAPED`;
/** Prints ESCAPED if the secret can be read there. */
const reads = (path: string): string => `cat ${path} 2>/dev/null | tr '\\0' '\\n' | head -c 100000`;
const perl = (code: string): string => `perl -MSocket -e '${code}' 2>/dev/null`;

const WRITES: readonly Attempt[] = [
  { name: 'append to /etc/passwd', script: works('echo x:x >> /etc/passwd') },
  { name: 'create a program in /usr/bin', script: works('touch /usr/bin/planted') },
  { name: 'create a file in the root folder', script: works('touch /planted') },
  { name: 'create a device folder', script: works('mkdir /dev/planted') },
  {
    name: 'write beside the workspace',
    script: `touch ../planted "$OUT/planted"; ls "$OUT" 2>/dev/null | grep -c planted`,
  },
  {
    name: 'write through a link out of the workspace',
    script: `ln -s "$OUT" way; ${works('echo x > way/planted')}; rm -f way`,
  },
  {
    name: 'append to a file through a link',
    script: `ln -s "$OUT/secret" way; ${works('echo x >> way && [ -s "$OUT/secret" ]')}; rm -f way`,
  },
  { name: 'move a file out', script: `touch mine; ${works('mv mine "$OUT/planted"')}; rm -f mine` },
  { name: 'hard-link a file of the outside', script: works('ln "$OUT/secret" stolen') },
  { name: 'write a Git hook', script: works('echo x > .git/hooks/pre-commit') },
  { name: 'change a Git hook', script: works('echo x >> .git/hooks/existing') },
  { name: 'remove the Git hooks', script: works('rm -rf .git/hooks') },
  { name: 'rename the Git hooks', script: works('mv .git/hooks .git/old') },
  { name: 'rename .git and make another', script: works('mv .git old && mkdir -p .git/hooks') },
  { name: 'change the Git configuration', script: works('echo "[core]" >> .git/config') },
  {
    name: 'replace the Git configuration',
    script: `${works('echo x > .git/new && mv .git/new .git/config')}; rm -f .git/new`,
  },
  { name: 'unmount the guard of the hooks', script: works('umount .git/hooks || umount -l .git') },
  { name: 'remount the system writable', script: works('mount -o remount,rw /usr') },
  { name: 'make a disk node', script: works('mknod disk b 8 0') },
  { name: 'make a memory node', script: works('mknod memory c 1 1') },
];

const PROC: readonly Attempt[] = [
  { name: 'set the core pattern', script: works('echo "|/bin/true" > /proc/sys/kernel/core_pattern') },
  { name: 'pull the system request trigger', script: works('echo h > /proc/sysrq-trigger') },
  { name: 'drop the caches of the kernel', script: works('echo 1 > /proc/sys/vm/drop_caches') },
  { name: 'set the program that loads modules', script: works('echo /bin/true > /proc/sys/kernel/modprobe') },
  { name: 'write to /sys', script: works('echo x > /sys/kernel/uevent_helper || ls /sys/kernel | grep -q .') },
  { name: 'move to another control group', script: works('echo $$ > /sys/fs/cgroup/cgroup.procs') },
  { name: 'remount /proc', script: works('mount -t proc proc /proc') },
  { name: 'read the memory of the kernel', script: works('head -c 1 /proc/kcore || head -c 1 /dev/mem') },
  { name: 'read the log of the kernel', script: 'sys syslog 103 116 3 0 0' },
];

const READS: readonly Attempt[] = [
  { name: 'read a key by its path', script: reads('"$OUT/secret"') },
  { name: 'read a key through a link', script: `ln -s "$OUT/secret" way; ${reads('way')}; rm -f way` },
  { name: 'read a key by the root of the first process', script: reads('"/proc/1/root$OUT/secret"') },
  { name: 'read a key by the working folder of the first process', script: reads('/proc/1/cwd/../outside/secret') },
  { name: 'read a key by a relative path', script: reads('../outside/secret ../../../../../../$OUT/secret') },
  { name: 'list the home folders', script: works('ls /root/.* "$HOST_HOME" | grep -q .') },
  { name: 'read the password hashes', script: works('head -c 1 /etc/shadow') },
  {
    name: 'read the name servers and the name of the machine',
    script: works('cat /etc/resolv.conf || cat /etc/hostname'),
  },
  { name: 'read the machine keys of SSH', script: works('ls /etc/ssh/ | grep -q key') },
  { name: 'read the temporary files of others', script: works('ls /tmp | grep -v whoa-test | grep -qvxF "$PROGRAMS"') },
  { name: 'read the sockets of services', script: works('ls /run /var/run | grep -q sock') },
  { name: 'find a secret in the environment', script: 'env' },
  { name: 'find a secret in the environment of the first process', script: reads('/proc/1/environ') },
  { name: 'find a secret in any environment', script: reads('/proc/[0-9]*/environ') },
  { name: 'find a secret in any command line', script: reads('/proc/[0-9]*/cmdline | grep -v SECRET') },
  { name: 'see the processes of the host', script: works('[ "$(ls -d /proc/[0-9]* | wc -l)" -gt 15 ]') },
  {
    name: 'use a descriptor that was left open',
    script: 'for fd in /proc/self/fd/*; do timeout 1 cat <"$fd"; done 2>/dev/null',
  },
  { name: 'open a file by its handle', script: 'sys open_by_handle_at 304 265 3 0 0' },
];

const NETWORK: readonly Attempt[] = [
  { name: 'reach the loopback of the host', script: works('timeout 2 bash -c "echo x > /dev/tcp/127.0.0.1/$PORT"') },
  { name: 'send a datagram to the host', script: 'echo x > /dev/udp/127.0.0.1/$PORT; true' },
  { name: 'reach another network', script: works('timeout 2 bash -c "echo x > /dev/tcp/192.0.2.1/80"') },
  {
    name: 'reach a socket by its path',
    script: perl('socket(S,AF_UNIX,SOCK_STREAM,0); connect(S,sockaddr_un($ENV{SOCKET})) and print "ESCAPED"'),
  },
  {
    name: 'reach an abstract socket',
    script: perl('socket(S,AF_UNIX,SOCK_STREAM,0); connect(S,sockaddr_un("\\0".$ENV{ABSTRACT})) and print "ESCAPED"'),
  },
  { name: 'open a raw socket', script: perl('socket(S,AF_INET,SOCK_RAW,1) and print "ESCAPED"') },
  { name: 'listen to packets', script: perl('socket(S,17,SOCK_RAW,768) and print "ESCAPED"') },
  { name: 'make a network device', script: works('ip link add planted type dummy') },
];

const PROCESSES: readonly Attempt[] = [
  { name: 'kill a process of the host', script: works('kill -9 $HOST_PID') },
  { name: 'kill everybody', script: works('kill -9 -1; false') },
  { name: 'trace a process of the host', script: 'sys ptrace 101 117 16902 $HOST_PID 0 0' },
  { name: 'get hold of a process of the host', script: 'sys pidfd_open 434 434 $HOST_PID 0' },
  {
    name: 'read the memory of the host',
    script: works('head -c 1 /proc/$HOST_PID/mem || head -c 1 /proc/$HOST_PID/environ'),
  },
  { name: 'enter the namespaces of the host', script: works('nsenter -t 1 -m true || nsenter -t $HOST_PID -a true') },
  { name: 'make a user namespace', script: works('unshare --user true || unshare --user --map-root-user true') },
  { name: 'make a mount namespace', script: works('unshare --mount true') },
  { name: 'make a PID namespace', script: works('unshare --pid --fork true') },
  { name: 'mount a file system', script: `mkdir -p here; ${works('mount -t tmpfs none here')}; rmdir here` },
  { name: 'mount by the new interface', script: 'sys fsopen 430 430 tmpfs 0' },
  { name: 'copy the tree of mounts', script: 'sys open_tree 428 428 -100 / 1' },
  { name: 'change the root folder', script: works('chroot / true') },
  { name: 'turn the root folder over', script: 'sys pivot_root 155 41 . .' },
  { name: 'become root by a program that may', script: works('grep -q "NoNewPrivs:.0" /proc/self/status') },
  {
    name: 'keep a capability',
    script: works('grep "^Cap[PEB]" /proc/self/status | grep -v "0000000000000000" | grep -qv CapBnd'),
  },
  { name: 'load a program into the kernel', script: 'sys bpf 321 280 5 0 0' },
  { name: 'load a module into the kernel', script: 'sys init_module 175 105 0 0 ""' },
  { name: 'load another kernel', script: 'sys kexec_load 246 104 0 0 0 0' },
  { name: 'count the events of the machine', script: 'sys perf_event_open 298 241 0 -1 0 -1 0' },
  { name: 'restart the machine', script: 'sys reboot 169 142 0xfee1dead 672274793 0 0' },
  { name: 'set the clock', script: works('date -s "2001-01-01"') },
  { name: 'add swap', script: 'sys swapon 167 224 here 0' },
  { name: 'type into a terminal', script: works('echo x > /dev/tty') },
  { name: 'rename the machine', script: 'hostname planted 2>/dev/null; true' },
  { name: 'outlive the command', script: '(setsid sleep $MARK >/dev/null 2>&1 &); true' },
];

const RESOURCES: readonly Attempt[] = [
  {
    name: 'start more processes than allowed',
    isForUsers: true,
    script:
      'for i in $(seq 200); do sleep 2 & done 2>/dev/null; [ "$(jobs -p | wc -l)" -gt 100 ] && echo ESCAPED; kill $(jobs -p) 2>/dev/null',
  },
  { name: 'take more memory than allowed', script: works('perl -e \'$x = "x" x (600 << 20); exit 0\'') },
  { name: 'fill the temporary folder', script: works('head -c 300M /dev/zero > /tmp/full') },
  { name: 'fill the home folder', script: works('head -c 300M /dev/zero > ~/full') },
  { name: 'fill the shared memory', script: works('head -c 400M /dev/zero > /dev/shm/full') },
  { name: 'leave a core', script: works('[ "$(ulimit -c)" != 0 ]') },
];

/** Attempts that a read-only workspace must reject, too. */
export const WRITE_ATTEMPTS: readonly Attempt[] = WRITES;

export const ATTEMPTS: readonly Attempt[] = [...WRITES, ...PROC, ...READS, ...NETWORK, ...PROCESSES, ...RESOURCES];

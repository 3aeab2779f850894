// A wall clock that tests can step, for real servers and workers. Monotonic clocks are not affected.
import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SteppedClock extends Disposable {
  /** A process with this environment uses the clock. */
  readonly env: NodeJS.ProcessEnv;
  /** How far it is ahead of the machine's. */
  readonly aheadMs: number;
  /** Sets it for all processes. */
  setAhead(ms: number): void;
}

/** Uses a system call, because a server may read the time before other libraries can be looked up. */
const LIBRARY = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *ahead_ms;

__attribute__((constructor)) static void open_clock(void) {
  const char *path = getenv("STEPPED_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof *ahead_ms, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) ahead_ms = page;
  close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, id, now);
  if (failed || !ahead_ms || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  int64_t ns = now->tv_nsec + *ahead_ms % 1000 * 1000000;
  now->tv_sec += *ahead_ms / 1000 + (ns >= 1000000000) - (ns < 0);
  now->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *seconds) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (seconds) *seconds = exact.tv_sec;
  return exact.tv_sec;
}
`;

export function createSteppedClock(): SteppedClock {
  const folder = mkdtempSync(join(tmpdir(), 'whoa-clock-'));
  // Servers run under separate accounts.
  chmodSync(folder, 0o755);
  const [library, file] = [join(folder, 'clock.so'), join(folder, 'ahead')];
  execFileSync('cc', ['-shared', '-fPIC', '-O2', '-x', 'c', '-', '-o', library], { input: LIBRARY });
  const ahead = openSync(file, 'w', 0o644);
  let aheadMs = 0;
  const setAhead = (ms: number): void => {
    aheadMs = ms;
    writeSync(ahead, new BigInt64Array([BigInt(ms)]), 0, 8, 0);
  };
  setAhead(0);
  return {
    env: { ...process.env, LD_PRELOAD: library, STEPPED_CLOCK: file },
    get aheadMs() {
      return aheadMs;
    },
    setAhead,
    [Symbol.dispose]() {
      closeSync(ahead);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

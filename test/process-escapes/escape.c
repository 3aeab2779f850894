// Processes that are harder to end than Perl can make them: cc -O2 -pthread -o escape escape.c
//   escape KIND MARK [SECONDS]    (MARK is only there to be found in the process table)
// They ignore TERM, keep the tags that they inherit, and end by themselves after 10 s. The first process of a machine must
// reap what they leave behind, so none starts more than some hundred a second.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static time_t deadline;
static const char *mark;

static int is_time(void) { return time(0) < deadline; }

static void idle(void) {
  while (is_time()) usleep(100000);
  _exit(0);
}

// Leaves the session, the parent and all descriptors.
static void detach(void) {
  if (fork()) _exit(0);
  setsid();
  for (int i = 0; i < 64; i++) close(i);
  open("/dev/null", O_RDWR);
  dup(0);
  dup(0);
}

// Chains: every link forks the next into its own session and ends.
static void hop(int chains, int us) {
  for (int i = 0; i < chains; i++) {
    if (fork()) continue;
    detach();
    while (is_time()) {
      if (fork()) _exit(0);
      setsid();
      usleep(us);
    }
    _exit(0);
  }
}

// Two processes that start daemons of daemons all the time.
static void storm(void) {
  for (int i = 0; i < 2; i++) {
    if (fork()) continue;
    detach();
    while (is_time()) {
      for (int k = 0; k < 2; k++) {
        if (fork()) continue;
        setsid();
        pid_t next = fork();
        if (next) {
          waitpid(next, 0, 0);
          _exit(0);
        }
        setsid();
        usleep(5000);
        _exit(0);
      }
      while (waitpid(-1, 0, 0) > 0) {}
      usleep(20000);
    }
    _exit(0);
  }
}

// vfork and exec of itself, then the parent ends.
static void vfork_exec(const char *self) {
  char left[16];
  if (!is_time()) _exit(0);
  snprintf(left, sizeof left, "%d", (int)(deadline - time(0)));
  usleep(3000);
  if (vfork() == 0) {
    execl(self, "escape", "vfork-link", mark, left, (char *)0);
    _exit(1);
  }
  _exit(0);
}

static void *fork_in_thread(void *unused) {
  while (is_time()) {
    pid_t child = fork();
    if (child == 0) {
      setsid();
      if (fork()) _exit(0);
      usleep(3000);
      _exit(0);
    }
    if (child > 0) waitpid(child, 0, 0);
    usleep(20000);
  }
  return unused;
}

static void threads(void) {
  pthread_t all[4];
  detach();
  for (int i = 0; i < 4; i++) pthread_create(&all[i], 0, fork_in_thread, 0);
  for (int i = 0; i < 4; i++) pthread_join(all[i], 0);
  _exit(0);
}

// Forks with the lowest free pid; only root may choose one.
static long fork_low(void) {
  for (int pid = 310; pid < 30000; pid++) {
    pid_t wanted = pid;
    struct clone_args args = {.exit_signal = SIGCHLD, .set_tid = (unsigned long)&wanted, .set_tid_size = 1};
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child >= 0) return child;
    if (errno != EEXIST) return -1;
  }
  return -1;
}

static void hop_low(void) {
  detach();
  while (is_time()) {
    long child = fork_low();
    if (child) _exit(child < 0);
    setsid();
    usleep(3000);
  }
  _exit(0);
}

static long read_number(const char *file, int isLast) {
  char text[128] = "";
  int descriptor = open(file, O_RDONLY);
  if (descriptor >= 0) {
    ssize_t got = read(descriptor, text, sizeof text - 1);
    text[got > 0 ? got : 0] = 0;
    close(descriptor);
  }
  const char *space = strrchr(text, ' ');
  return atol(isLast && space ? space + 1 : text);
}

// Takes pids without being counted as a fork: clones that fail, because no descriptor is free. When the pids have started
// again at the bottom, it leaves a daemon there.
static void wrap_pids(const char *self) {
  detach();
  long start = getpid();
  struct rlimit all, none;
  getrlimit(RLIMIT_NOFILE, &all);
  none = all;
  none.rlim_cur = 3;
  for (int n = 1; n < 200000; n++) {
    int descriptor;
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (unsigned long)&descriptor, .exit_signal = SIGCHLD};
    setrlimit(RLIMIT_NOFILE, &none);
    long child = syscall(SYS_clone3, &args, sizeof args);
    setrlimit(RLIMIT_NOFILE, &all);
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, 0, 0);
    if (n % 32 || read_number("/proc/loadavg", 1) >= start) continue;
    if (fork()) _exit(0);
    setsid();
    if (fork()) _exit(0);
    execl(self, "escape", "idle", mark, "10", "wrapped", (char *)0);
  }
  _exit(1);
}

int main(int count, char **words) {
  char *self = realpath("/proc/self/exe", 0);
  if (count < 3) return 9;
  const char *kind = words[1];
  mark = words[2];
  deadline = time(0) + (count > 3 ? atoi(words[3]) : 10);
  signal(SIGTERM, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  if (!strcmp(kind, "idle")) idle();
  if (!strcmp(kind, "vfork-link")) vfork_exec(self);
  // What follows leaves the shell, so that this returns to it.
  if (!strcmp(kind, "hop")) return hop(1, 5000), 0;
  if (!strcmp(kind, "hop-six")) return hop(6, 3000), 0;
  if (!strcmp(kind, "hop-fast")) return hop(4, 1500), 0;
  if (!strcmp(kind, "storm")) return storm(), 0;
  if (fork()) return 0;
  if (!strcmp(kind, "vfork")) {
    detach();
    vfork_exec(self);
  }
  if (!strcmp(kind, "threads")) threads();
  if (!strcmp(kind, "no-environment")) {
    char *none[] = {0};
    detach();
    execle(self, "escape", "idle", mark, (char *)0, none);
  }
  if (!strcmp(kind, "low")) {
    detach();
    if (fork_low() == 0) idle();
    _exit(0);
  }
  if (!strcmp(kind, "hop-low")) hop_low();
  if (!strcmp(kind, "wrap")) wrap_pids(self);
  return 9;
}

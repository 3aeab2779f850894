# Processes that are hard to end. They end by themselves after 20 s and are never more than 50.
#   escape.pl KIND MARK    (MARK is only there to be found in the process table)
use strict; use warnings; use POSIX ();
my ($kind, $mark) = @ARGV;
my $deadline = time + 20;
sub nap { select undef, undef, undef, shift }
sub idle { nap 0.2 while time < $deadline; POSIX::_exit(0) }
sub close_all { POSIX::close($_) for 0 .. 255; open STDIN, '<', '/dev/null'; open STDOUT, '>', '/dev/null'; open STDERR, '>', '/dev/null' }

# The classic daemon: fork, setsid, fork, no descriptors. A stealthy one also starts afresh without an environment.
sub daemon {
  my $pid = fork; if ($pid) { waitpid $pid, 0; exit 0 }
  POSIX::setsid(); POSIX::_exit(0) if fork;
  chdir '/'; close_all();
  if ($kind eq 'stealth') { my $perl = $^X; my $self = $0; %ENV = (); exec $perl, $self, 'idle', $mark }
  idle();
}

# Everybody has a child; who loses the child or the parent forks again. Deaf to TERM, all in one group.
sub hydra {
  my $depth = shift;
  $SIG{$_} = 'IGNORE' for qw(TERM INT HUP);
  my ($parent, $child) = (getppid, 0);
  while (time < $deadline) {
    while ((my $gone = waitpid -1, POSIX::WNOHANG()) > 0) { $child = 0 if $gone == $child }
    if (!$child && $depth < 10) { $child = fork; hydra($depth + 1) if defined $child && $child == 0 }
    if (getppid != $parent) { $parent = getppid; if ($depth < 10) { my $pid = fork; hydra($depth + 1) if defined $pid && $pid == 0 } }
    nap 0.002;
  }
  POSIX::_exit(0);
}

# Six chains; every link lives a few milliseconds and forks the next into a separate session.
sub hop {
  for (1 .. 6) {
    my $pid = fork; next if $pid;
    POSIX::setsid();
    while (time < $deadline) {
      my $next = fork; POSIX::_exit(0) if $next;
      POSIX::setsid(); nap 0.003;
    }
    POSIX::_exit(0);
  }
}

# Guards its memory, so that nobody but root reads its environment.
sub undumpable {
  my $pid = fork; if ($pid) { waitpid $pid, 0; exit 0 }
  POSIX::setsid(); POSIX::_exit(0) if fork;
  close_all(); syscall(157, 4, 0, 0, 0, 0); idle();
}

# Takes the orphans of its children in, so that they never become init's.
sub subreaper {
  $SIG{$_} = 'IGNORE' for qw(TERM INT HUP);
  syscall(157, 36, 1, 0, 0, 0);
  for (1 .. 3) {
    my $pid = fork; next if $pid;
    POSIX::setsid(); POSIX::_exit(0) if fork;
    %ENV = (); exec $^X, $0, 'idle', $mark;
  }
  idle();
}

# Held by a tracer in a session of its own.
sub traced {
  my $child = fork; idle() unless $child;
  my $tracer = fork;
  if (!$tracer) { POSIX::setsid(); $SIG{TERM} = 'IGNORE'; syscall(101, 0x4206, $child, 0, 0); syscall(101, 0x4207, $child, 0, 0); idle() }
  idle();
}

# Root may choose the pid of a child: one far below everybody started lately.
sub chosen {
  my $pid = fork; if ($pid) { waitpid $pid, 0; exit 0 }
  POSIX::setsid();
  for my $wanted (310 .. 30_000) {
    my $tids = pack 'l', $wanted;
    my $args = pack 'Q11', 0, 0, 0, 0, 17, 0, 0, 0, unpack('Q', pack 'p', $tids), 1, 0;
    my $new = syscall 435, $args, 88;
    if ($new == 0) { close_all(); $SIG{TERM} = 'IGNORE'; idle() }
    POSIX::_exit(0) if $new > 0;
  }
  POSIX::_exit(1);
}

# Forty at once, some in sessions of their own.
sub burst {
  $SIG{TERM} = 'IGNORE';
  for my $number (1 .. 40) { my $pid = fork; next if $pid; POSIX::setsid() if $number % 3 == 0; idle() }
  idle();
}

if    ($kind eq 'undumpable')                       { undumpable() }
elsif ($kind eq 'subreaper')                        { subreaper() }
elsif ($kind eq 'traced')                           { traced() }
elsif ($kind eq 'chosen')                           { chosen() }
elsif ($kind eq 'burst')                            { burst() }
elsif ($kind eq 'idle')                             { idle() }
elsif ($kind eq 'daemon' || $kind eq 'stealth')     { daemon() }
elsif ($kind eq 'hydra')                            { hydra(0) }
elsif ($kind eq 'hop')                              { hop() }
else                                                { die "beast: unknown kind $kind" }

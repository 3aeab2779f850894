# Processes that are hard to end. They end by themselves after 20 s and are never more than 50.
#   beast.pl KIND MARK    (MARK is only there to be found in the process table)
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

# Six chains; every link lives a few milliseconds and forks the next into a session of its own.
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

if    ($kind eq 'idle')                             { idle() }
elsif ($kind eq 'daemon' || $kind eq 'stealth')     { daemon() }
elsif ($kind eq 'hydra')                            { hydra(0) }
elsif ($kind eq 'hop')                              { hop() }
else                                                { die "beast: unknown kind $kind" }

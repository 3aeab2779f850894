// The watchdog as its own entry, for bundles: it must be a file named `watchdog` next to them.
import '../process/watchdog.ts';

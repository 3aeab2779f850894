// The watchdog as an entry of its own, for bundles: it must stand beside them as a file named `watchdog`.
import '../process/watchdog.ts';

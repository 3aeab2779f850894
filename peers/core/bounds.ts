// A busy machine is no reason to fail in our own tests; the table is made with the bounds as they are written here.
const slack = Number(process.env['WHOA_PEERS_SLACK'] ?? 1);

/** A stop is on time within this limit, unless a tool delays it. */
export const SOON_MS: number = 1_000 * slack;
/** A tool that ignores its signal may take this long away from the user. */
export const DEAF_MS: number = 2_500 * slack;
/** How long a tool may take to start: some are processes. */
export const START_MS = 10_000;
/** How long a scenario waits for something that should happen. */
export const WAIT_MS = 4_000;
/** How long a scenario watches for something that must not happen. */
export const QUIET_MS = 1_000;

import { LIMITS } from '../rules/rules.ts';

/** How stored data gets from one format to the next. `Step` is what one kind of store can do at once. */
export interface FormatChange<Step extends { readonly name: string } = { readonly name: string }> {
  /** The format it leads to. */
  readonly to: number;
  /** Done while processes of the older version still run: what they cannot bear must wait. */
  readonly before: readonly Step[];
  /** Done once the format is written, for what processes of the older version wrote until then. */
  readonly after: readonly Step[];
}

/** The result of one part of a step. */
export interface Part {
  readonly rows: number;
  readonly isDone: boolean;
}

/** How far a store is. */
export interface MigratorState {
  readonly format: number;
  /** The steps that were started, and whether they are done. */
  readonly steps: ReadonlyMap<string, boolean>;
}

/** The names of workers that cannot use a format. */
export interface OlderWorkers {
  readonly holding: readonly string[];
  /** Those that hold nothing and were seen within the last minute. They may be gone. */
  readonly waiting: readonly string[];
}

/** Changes the format of one kind of store. Every method can be repeated. */
export interface Migrator extends AsyncDisposable {
  /** Describes the store, never with a password. */
  readonly store: string;
  /** In order. Names of steps are unique. */
  readonly changes: readonly FormatChange[];
  /** Changes nothing. `undefined`: there is no store yet. */
  state(): Promise<MigratorState | undefined>;
  /** Creates what is missing. Throws `StoreBusyError` if another migration runs and must not be disturbed. */
  begin(): Promise<void>;
  /** Does a small part of a step, and records how far it is in the same transaction, if the store can. */
  runPart(step: string, signal: AbortSignal | undefined): Promise<Part>;
  olderWorkers(format: number): Promise<OlderWorkers>;
  /** Writes the format and marks the steps after it as started, unless older workers hold tasks; returns those. */
  finish(format: number): Promise<readonly string[]>;
}

/** How many rows one part changes: few enough that workers hardly wait for it. */
export const PART_ROWS = 1_000;

/** A worker that waits for tasks records it again before this time. */
export const SEEN_MS: number = LIMITS.parkedMs / 2 + 5_000;

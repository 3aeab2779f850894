/** How a piece of work ended, in the engine's own words. */
interface Ending {
  readonly status: string;
  readonly answer?: string | undefined;
}

/** An engine, as far as the story needs it: used by any process. */
export interface Side extends AsyncDisposable {
  readonly name: string;
  /** Starts work in a conversation. Returns its id. */
  start(request: string, conversation?: string): Promise<string>;
  /** Asks the work to stop, from a process that does not run it. Returns what the caller is told. */
  cancel(id: string): Promise<string>;
  /** Resolves when the engine says that the work has ended. */
  ended(id: string): Promise<Ending>;
}

/** A worker process of an engine. */
export type StartWorker = (url: string, folder: string) => Promise<unknown>;

/** How a piece of work ended, in the engine's own words. */
interface Ending {
  readonly status: string;
  readonly answer?: string | undefined;
}

/** The part of an engine that the scenario needs. Any process can use it. */
export interface Side extends AsyncDisposable {
  readonly name: string;
  /** Starts work in a conversation. Returns its id. */
  start(request: string, conversation?: string): Promise<string>;
  /** Asks the work to stop, from a process that does not run it. Returns what the caller gets. */
  cancel(id: string): Promise<string>;
  /** Resolves when the engine reports that the work has ended. */
  ended(id: string): Promise<Ending>;
}

/** A worker process of an engine. */
export type StartWorker = (url: string, folder: string) => Promise<unknown>;

/** A queue of trivial tasks, ours or a peer's: the part that is measured. */
export interface Queue {
  /** Creates tasks, in a separate process. */
  openCreator(url: string): Promise<Creator>;
  /** Runs tasks, in a separate process. */
  startWorker(url: string, options: WorkerOptions): Promise<AsyncDisposable>;
}

export interface Creator extends AsyncDisposable {
  /** Resolves when the queue has acknowledged the task. */
  create(): Promise<void>;
}

interface WorkerOptions {
  readonly concurrency: number;
  /** The task. */
  readonly work: () => Promise<void>;
  /** The queue knows that a task has ended. */
  readonly onEnd: () => void;
  /** Called when the queue returned `count` tasks, or rejected one. */
  readonly onClaims: (count: number) => void;
}

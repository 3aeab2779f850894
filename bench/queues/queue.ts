/** A queue of trivial tasks, ours or a peer's, as far as it is measured. */
export interface Queue {
  /** What the creator needs, in its own process. */
  openCreator(url: string): Promise<Creator>;
  /** What a worker needs, in its own process. */
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
  /** The queue was asked for tasks and handed out so many, or refused one. */
  readonly onClaims: (count: number) => void;
}

/** Thrown when a worker no longer holds its task. Stop working: its writes no longer count. */
export class LeaseLostError extends Error {
  override readonly name: string = 'LeaseLostError';
  readonly code: string = 'LEASE_LOST';
  readonly taskId: string;
  readonly epoch: number;

  constructor(taskId: string, epoch: number, options: { cause?: unknown } = {}) {
    super(`Lost the lease on task ${taskId} (epoch ${epoch}); stop working on it`, options);
    this.taskId = taskId;
    this.epoch = epoch;
  }
}

/** Thrown when a batch does not start where the journal ends. */
export class JournalGapError extends Error {
  override readonly name: string = 'JournalGapError';
  readonly code: string = 'JOURNAL_GAP';

  constructor(taskId: string, expected: number, given: number) {
    super(`The journal of task ${taskId} ends at ${expected}, not at ${given}; read it and append after its end`);
  }
}

/**
 * Thrown when a batch would exceed the journal's limit. Nothing was written. Truncate the batch, or replace more
 * entries.
 */
export class JournalFullError extends Error {
  override readonly name: string = 'JournalFullError';
  readonly code: string = 'JOURNAL_FULL';
  /** The current size of the journal. */
  readonly bytes: number;

  constructor(taskId: string, bytes: number, maxBytes: number) {
    super(
      `The journal of task ${taskId} has ${bytes} bytes and may have ${maxBytes}; give the store a larger maxJournalBytes`,
    );
    this.bytes = bytes;
  }
}

/**
 * Thrown when a batch asks or closes questions that it may not. Nothing was written. `stopping`: the task is being stopped.
 * `full`: too many are open. `changed`: one is not as the batch assumes; read the orders.
 */
export class QuestionRefusedError extends Error {
  override readonly name: string = 'QuestionRefusedError';
  readonly code: string = 'QUESTION_REFUSED';
  /** `unread`: a message of the user is stored that the run has not read. */
  readonly why: 'stopping' | 'full' | 'changed' | 'unread';

  constructor(taskId: string, why: QuestionRefusedError['why']) {
    super(`The questions of task ${taskId} cannot change like this (${why}); nothing was written, read its orders`);
    this.why = why;
  }
}

/** Thrown when the store did not become available before the timeout. Nothing was changed; try again. */
export class StoreBusyError extends Error {
  override readonly name: string = 'StoreBusyError';
  readonly code: string = 'STORE_BUSY';
  /** The store method that was called, if that is known. */
  readonly operation: string | undefined;

  constructor(message: string, { operation, ...options }: { cause?: unknown; operation?: string | undefined } = {}) {
    super(message, options);
    this.operation = operation;
  }
}

/** Thrown when the store has been closed. */
export class StoreClosedError extends Error {
  override readonly name: string = 'StoreClosedError';
  readonly code: string = 'STORE_CLOSED';

  constructor() {
    super('This task store has been closed; create another');
  }
}

/** Thrown when a store's setup does not work: a missing driver, a wrong address, or a different layout or format. */
export class StoreSetupError extends Error {
  override readonly name: string = 'StoreSetupError';
  readonly code: string = 'STORE_SETUP';
}

/** Thrown when the tenant has no such task: it never existed, or its retention time has passed. */
export class TaskNotFoundError extends Error {
  override readonly name: string = 'TaskNotFoundError';
  readonly code: string = 'TASK_NOT_FOUND';

  constructor(id: string) {
    super(`There is no task '${id}' of this tenant; it never existed, or is no longer stored`);
  }
}

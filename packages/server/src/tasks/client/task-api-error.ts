/** Thrown when the server refused a request or could not respond. */
export class TaskApiError extends Error {
  override readonly name: string = 'TaskApiError';
  readonly status: number;
  /** A code for programs: `forbidden`, `invalid`, `store-busy`. */
  readonly code: string;
  /** When to try again, if that helps. */
  readonly retryAfterMs: number | undefined;
  /** The other fields of the refusal. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(status: number, body: { code: string; message: string }, retryAfterMs?: number) {
    const { code, message, ...fields } = body;
    super(message);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
    this.fields = fields;
  }
}

/** Converts a response to an error. */
export async function readError(response: Response): Promise<TaskApiError> {
  const text = await response.text();
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  return new TaskApiError(response.status, parseRefusal(text) ?? unreadable(response), retryAfterMs);
}

function parseRefusal(text: string): { code: string; message: string } | undefined {
  try {
    const { error } = JSON.parse(text) as { error?: { code?: unknown; message?: unknown } };
    if (typeof error?.code !== 'string' || typeof error.message !== 'string') return undefined;
    return { ...error, code: error.code, message: error.message };
  } catch {
    return undefined;
  }
}

/** The response did not come from a task API, but from a proxy or another server. */
function unreadable({ status }: Response): { code: string; message: string } {
  return { code: 'no-task-api', message: `Status ${status}, but not from a task API; check the address` };
}

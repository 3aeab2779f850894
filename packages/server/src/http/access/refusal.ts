/** The body of every refusal: a code for programs, and a message for users that says what to do next. */
export interface ErrorBody {
  readonly error: { readonly code: string; readonly message: string; readonly [more: string]: unknown };
}

/** Creates the response of a refusal. `more` is added to code and message. */
export function refuse(
  status: number,
  { code, message, ...more }: ErrorBody['error'],
  headers: Readonly<Record<string, string>> = {},
): Response {
  return Response.json({ error: { code, message, ...more } }, { status, headers });
}

/** Like `refuse`, and says when to try again. */
export function refuseTemporarily(status: 429 | 503, error: ErrorBody['error'], retryMs: number): Response {
  return refuse(status, error, { 'retry-after': `${Math.max(1, Math.ceil(retryMs / 1_000))}` });
}

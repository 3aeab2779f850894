/** Says what failed, with the causes: 'fetch failed' alone does not say why. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { message, cause } = error;
  // Attempts at several addresses have no message themselves.
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [cause];
  const inner = first === undefined ? '' : describeError(first);
  return [message, inner].filter((text) => text !== '').join(': ');
}

const CODE = /^[A-Za-z0-9_.:-]{1,64}$/;

/** Returns what is counted of an end: the code of its error, or the kind of its reason. Postgres has this pattern too. */
export function toEndCode(
  status: string,
  { error, reason }: { readonly error?: { readonly code?: string }; readonly reason?: { readonly kind: string } },
): string | undefined {
  const code = status === 'failed' ? error?.code : status === 'cancelled' ? reason?.kind : undefined;
  return code !== undefined && CODE.test(code) ? code : undefined;
}

/** The codes of Node for a certificate that is not accepted. */
const UNTRUSTED = /(^|_)CERT(_|$)|^UNABLE_TO_|^HOSTNAME_MISMATCH$|^INVALID_CA$/;

/** Returns what to do about a server whose certificate is not accepted; undefined for other errors. */
export function adviceOnCertificate(error: unknown, setting?: string): string | undefined {
  const { code = '' } = (error ?? {}) as { code?: unknown };
  if (!UNTRUSTED.test(String(code))) return undefined;
  return `this process does not trust the server's certificate: give it the certificate of the authority, with ${setting === undefined ? '' : `${setting} or `}NODE_EXTRA_CA_CERTS=FILE`;
}

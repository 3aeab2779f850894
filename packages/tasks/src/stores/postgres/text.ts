const NAMES_BYTES_MAX = 2_400;

/** Refuses a name that Postgres cannot keep as it is, and so could take for another. */
export function checkText(argument: string, value: string | undefined): void {
  if (value !== undefined && (value.includes('\0') || !value.isWellFormed())) {
    throw new TypeError(`${argument}: Postgres cannot keep a name with a NUL or half a surrogate pair in it`);
  }
}

/** Names are found through an index, whose entries may not be longer. */
export function checkNames(tenant: string, conversation: string | undefined): void {
  checkText('tenant', tenant);
  checkText('conversation', conversation);
  if (Buffer.byteLength(tenant) + Buffer.byteLength(conversation ?? '') > NAMES_BYTES_MAX) {
    throw new TypeError(`tenant, conversation: together at most ${NAMES_BYTES_MAX} bytes in UTF-8 with Postgres`);
  }
}

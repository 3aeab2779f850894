/** Formats a value as JSON. What JSON cannot represent becomes text: a result must not be lost because of its type. */
export function asJson(value: unknown): string {
  try {
    const text = JSON.stringify(value, (_name, one: unknown) => (typeof one === 'bigint' ? `${one}` : one));
    return text ?? JSON.stringify(String(value));
  } catch {
    return JSON.stringify(asPlainText(value));
  }
}

/** Formats a value as text: a string unchanged, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : asJson(value);
}

/** Even this can throw: an object without a prototype, or a revoked proxy, cannot be converted to a string. */
function asPlainText(value: unknown): string {
  try {
    // `String` of a list would print all its entries.
    return Array.isArray(value) ? `(a list of ${value.length})` : String(value);
  } catch {
    return `(a value of type ${typeof value} that cannot be shown)`;
  }
}

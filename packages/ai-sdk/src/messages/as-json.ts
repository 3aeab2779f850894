/** A value as JSON. What JSON has no word for is told as text: a result must not be lost because of its form. */
export function asJson(value: unknown): string {
  try {
    return JSON.stringify(value, bigintAsText) ?? JSON.stringify(String(value));
  } catch {
    return JSON.stringify(asPlainText(value));
  }
}

/** A value in words: a text as it is, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : asJson(value);
}

function bigintAsText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value;
}

/** Even this can throw: a value without a prototype, or a revoked proxy, has no text. */
function asPlainText(value: unknown): string {
  try {
    // A list would name all it holds.
    return Array.isArray(value) ? `(a list of ${value.length})` : String(value);
  } catch {
    return `(a value of type ${typeof value} that cannot be shown)`;
  }
}

/** A value as text; nothing is `null`. */
export function jsonOf(value: unknown): string {
  return JSON.stringify(value ?? null);
}

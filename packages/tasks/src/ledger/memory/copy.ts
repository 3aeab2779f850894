/** Stored JSON may nest deeper than JavaScript functions may call themselves. */
const MAX_DEPTH = 100;

/** Copies plain data. Much faster than `structuredClone`, which is used for everything else. */
export function copyDeep<T>(value: T): T {
  return copy(value, 0) as T;
}

function copy(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH) return structuredClone(value);
  if (Array.isArray(value)) return value.map((one) => copy(one, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return structuredClone(value);
  // Spread first: assigning a field called `__proto__` that isn't there yet would set the prototype.
  const copied = { ...value } as Record<string, unknown>;
  for (const name of Object.keys(copied)) {
    const field = copied[name];
    if (typeof field === 'object' && field !== null) copied[name] = copy(field, depth + 1);
  }
  return copied;
}

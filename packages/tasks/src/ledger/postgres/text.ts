import { SettingsError } from '@whoa/core';

const MAX_NAMES_BYTES = 2_400;

/** Rejects a name that Postgres cannot store unchanged, because it could match another one. */
export function checkText(argument: string, value: string): void {
  if (value.includes('\0') || !value.isWellFormed()) {
    throw new SettingsError(argument, `Postgres cannot store a name with a NUL or half a surrogate pair; remove it`);
  }
}

/** Names are indexed, and index entries may not be longer. */
export function checkNames(names: Readonly<Record<string, string | undefined>>): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(names)) {
    if (value === undefined) continue;
    checkText(name, value);
    bytes += Buffer.byteLength(value);
  }
  if (bytes > MAX_NAMES_BYTES) {
    throw new SettingsError(
      Object.keys(names).join(', '),
      `together at most ${MAX_NAMES_BYTES} bytes in UTF-8 with Postgres`,
    );
  }
}

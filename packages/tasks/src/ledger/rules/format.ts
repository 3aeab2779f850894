/** The newest format of stored data that this version can use. A new store gets it; others keep theirs. */
export const FORMAT: number = 2;
/** The oldest format that it can use. */
export const OLDEST_FORMAT: number = 2;

/** Returns why data of a format cannot be used by this version, and what to do; `undefined` if it can be used. */
export function wrongFormat(found: number): string | undefined {
  if (found >= OLDEST_FORMAT && found <= FORMAT) return undefined;
  const own = OLDEST_FORMAT === FORMAT ? `format ${FORMAT}` : `formats ${OLDEST_FORMAT} to ${FORMAT}`;
  const advice =
    found > FORMAT
      ? 'update Whoa'
      : 'it cannot be migrated: let the version of Whoa that wrote it finish its tasks, and use a new database or file';
  return `has format ${found}, and this version of Whoa uses ${own}; ${advice}`;
}

/** Reports a failure that no caller waits for: as a process warning that shows its cause, or on the console elsewhere. */
export function warn(warning: Error): void {
  const { process } = globalThis as { process?: { emitWarning?: (warning: Error) => void } };
  try {
    Object.assign(warning, { detail: (warning.cause as Error | undefined)?.stack });
  } catch {
    // A cause may be anything, also something that cannot be read.
  }
  if (typeof process?.emitWarning === 'function') process.emitWarning(warning);
  else console.warn(warning);
}

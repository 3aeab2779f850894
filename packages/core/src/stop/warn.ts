/** Reports a failure that no caller waits for: as a process warning, or on the console where there is no process. */
export function warn(warning: Error): void {
  const { process } = globalThis as { process?: { emitWarning?: (warning: Error) => void } };
  if (typeof process?.emitWarning === 'function') process.emitWarning(warning);
  else console.warn(warning);
}

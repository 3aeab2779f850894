import type { CleanupError } from '@whoa/core/embed';
import { oneLine } from './text/plain-text.ts';

const MAX_CHARACTERS = 400;

/** Prints one line about a cleanup that failed. The command continues. */
export function reportCleanup({ message, cause }: CleanupError): void {
  const why = cause instanceof Error ? `: ${cause.message}` : '';
  process.stderr.write(`whoa: ${oneLine(message + why, MAX_CHARACTERS)}\n`);
}

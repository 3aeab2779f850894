import type { Screen } from '../terminal/screen.ts';
import { askForLine } from '../terminal/text/typed-line.ts';

const QUESTION = 'Every call is allowed, and no sandbox holds commands.';
const PROMPT = "Type 'yes' to go on: ";

/** Asks once, in words: `--yes` alone does not say that everything may happen outside of a sandbox. */
export async function askForConsent(screen: Screen, signal: AbortSignal): Promise<boolean> {
  const held = screen.hold();
  try {
    held.note(QUESTION);
    const typed = await askForLine(() => held.prompt(PROMPT), {
      input: process.stdin,
      output: process.stderr,
      signal,
    });
    return typed?.toLowerCase() === 'yes';
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  } finally {
    held[Symbol.dispose]();
  }
}

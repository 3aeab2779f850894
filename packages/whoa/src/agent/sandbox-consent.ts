import type { Screen } from '../terminal/screen.ts';
import { askForLine } from '../terminal/text/typed-line.ts';

const QUESTION = '--yes allows every call, and commands run without a sandbox.';
const PROMPT = "Type 'yes' to continue: ";

/** Asks the user to type yes: `--yes` alone does not mean that commands may run without a sandbox. */
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

import type { System } from '../system.ts';
import { TypedLines } from '../terminal/input/typed-lines.ts';
import type { Screen } from '../terminal/screen.ts';

const QUESTION = '--yes allows every call, and commands run without a sandbox.';
const PROMPT = "Type 'yes' to continue: ";

/** Asks the user to type yes: `--yes` alone does not mean that commands may run without a sandbox. */
export async function askForConsent(screen: Screen, signal: AbortSignal, { stdin, stderr }: System): Promise<boolean> {
  const held = screen.hold();
  const lines = new TypedLines({}, stdin, stderr);
  try {
    held.note(QUESTION);
    return (await lines.ask(PROMPT, { held, signal }))?.toLowerCase() === 'yes';
  } finally {
    lines[Symbol.dispose]();
    held[Symbol.dispose]();
  }
}

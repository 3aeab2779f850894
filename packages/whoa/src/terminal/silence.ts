/** Tells a person who started by hand what only an editor can talk to. */
export function explainSilence(command: string): void {
  if (!process.stdin.isTTY) return;
  process.stderr.write(
    `whoa ${command}: waiting for an editor on standard input; see docs/guides/editors.md. Ctrl-C ends it.\n`,
  );
}

/** Explains to a user who started the command in a terminal that it waits for an editor. */
export function explainSilence(command: string): void {
  if (!process.stdin.isTTY) return;
  process.stderr.write(
    `whoa ${command}: waiting for an editor on standard input; see docs/guides/editors.md. Ctrl-C stops it.\n`,
  );
}

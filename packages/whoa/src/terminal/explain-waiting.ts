/** Explains to a user who started the command in a terminal what it waits for. */
export function explainWaiting(
  command: string,
  wait = 'an editor on standard input; see docs/guides/editors.md',
): void {
  if (!process.stdin.isTTY) return;
  process.stderr.write(`whoa ${command}: waiting for ${wait}. Ctrl-C stops it.\n`);
}

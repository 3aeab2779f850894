/** Returns the two sides of each hunk of a unified diff: v1 clients compare texts and do not support patches. */
export function hunksOf(diff: string): { oldText: string; newText: string }[] {
  const hunks: { oldText: string; newText: string }[] = [];
  for (const line of diff.split('\n')) {
    const hunk = hunks.at(-1);
    if (line.startsWith('@@')) hunks.push({ oldText: '', newText: '' });
    else if (hunk === undefined || line.startsWith('\\')) continue;
    else if (line.startsWith('-')) hunk.oldText += `${line.slice(1)}\n`;
    else if (line.startsWith('+')) hunk.newText += `${line.slice(1)}\n`;
    else if (line.startsWith(' ')) {
      hunk.oldText += `${line.slice(1)}\n`;
      hunk.newText += `${line.slice(1)}\n`;
    }
  }
  return hunks;
}

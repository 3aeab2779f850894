/** Returns the name that a mistyped one most likely means, if at most a third of its characters are wrong. */
export function findClosestName(typed: string, names: readonly string[]): string | undefined {
  const most = Math.max(...names.map(({ length }) => length)) / 3;
  for (let mistakes = 1; mistakes <= most; mistakes++) {
    const closest = names.find((name) => mistakes * 3 <= name.length && isWithin(typed, name, mistakes));
    if (closest !== undefined) return closest;
  }
  return undefined;
}

/** Whether at most so many characters were added, left out, replaced, or swapped with the next one. */
function isWithin(typed: string, name: string, mistakes: number): boolean {
  if (typed === name) return true;
  if (Math.abs(typed.length - name.length) > mistakes || mistakes === 0) return false;
  let same = 0;
  while (typed[same] === name[same]) same++;
  const [rest, meant] = [typed.slice(same), name.slice(same)];
  const isSwapped = rest[0] === meant[1] && rest[1] === meant[0];
  return (
    isWithin(rest.slice(1), meant, mistakes - 1) ||
    isWithin(rest, meant.slice(1), mistakes - 1) ||
    isWithin(rest.slice(1), meant.slice(1), mistakes - 1) ||
    (isSwapped && isWithin(rest.slice(2), meant.slice(2), mistakes - 1))
  );
}

/** A duration as people read it: 0.4 s, 38 s, 2 m 05 s, 1 h 06 m. */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, ms);
  if (whole < 1_000) return `${Math.round(whole)} ms`;
  if (whole < 10_000) return `${(whole / 1_000).toFixed(1)} s`;
  const seconds = Math.floor(whole / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} m ${String(seconds % 60).padStart(2, '0')} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${String(minutes % 60).padStart(2, '0')} m`;
  return `${Math.floor(hours / 24)} d`;
}

/** A count as people read it: 940, 9.8k, 212k, 1.2M. */
export function formatCount(count: number): string {
  if (count < 1_000) return `${count}`;
  if (count < 100_000) return `${(count / 1_000).toFixed(1)}k`;
  return count < 1_000_000 ? `${Math.round(count / 1_000)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

// Making one is slow, and `toLocaleString` makes one each time.
const WHOLE = new Intl.NumberFormat('en');

/** A whole number with separators: 10,412. */
export function formatWhole(count: number): string {
  return WHOLE.format(count);
}

/** `1 call`, `2 calls`. */
export function plural(count: number, one: string, many: string = `${one}s`): string {
  return `${formatWhole(count)} ${count === 1 ? one : many}`;
}

/** The time of day: 14:02:51. */
export function formatClock(at: number): string {
  return new Date(at).toLocaleTimeString('en-GB');
}

/** A list in a sentence: a, b and c. */
export function joinWords(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

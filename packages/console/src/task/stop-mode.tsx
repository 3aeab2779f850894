import type { ReactNode } from 'react';

export type StopModeName = 'graceful' | 'now' | 'kill';

/** What each mode does, in words. */
export const MODES: readonly { readonly mode: StopModeName; readonly words: string }[] = [
  { mode: 'graceful', words: 'running calls may finish; interrupted after 10 s, abandoned 2 s later' },
  { mode: 'now', words: 'running calls are interrupted; abandoned after 2 s' },
  { mode: 'kill', words: 'nothing is waited for' },
];

interface ModeSelectProps {
  readonly mode: StopModeName;
  readonly onChange: (mode: StopModeName) => void;
}

/** Chooses how a stop begins, where there is little room. */
export function ModeSelect({ mode, onChange }: ModeSelectProps): ReactNode {
  return (
    <select aria-label="Mode" value={mode} onChange={(event) => onChange(event.target.value as StopModeName)}>
      <option value="graceful">graceful: 10 s, then 2 s</option>
      <option value="now">now: 2 s</option>
      <option value="kill">kill: immediately</option>
    </select>
  );
}

import type { StopLevel } from '@whoa/core';
import { formatDuration } from '../model/format.ts';
import type { RunModel } from '../model/run-model.ts';

/** About how wide a character of a label is. */
export const CHARACTER = 6.2;

/** A level of a stop, in pixels. */
export interface Band {
  readonly level: StopLevel;
  readonly x: number;
  readonly width: number;
  readonly isAhead: boolean;
  readonly label: string;
}

interface BandContext {
  readonly end: number;
  readonly isLive: boolean;
  /** When the coming levels begin. */
  readonly ahead: { readonly abortAt: number; readonly killAt: number } | undefined;
  readonly toX: (at: number) => number;
}

/** The levels of a stop: those it has reached, and those that lie ahead. */
export function toBands({ levels }: RunModel, { end, isLive, ahead, toX }: BandContext): readonly Band[] {
  const reached = levels.map(({ level, at }, index) => ({
    level,
    from: at,
    to: levels[index + 1]?.at ?? end,
    isAhead: false,
  }));
  const current = levels.at(-1)?.level;
  const coming: { level: StopLevel; from: number; to: number; isAhead: boolean }[] = [];
  if (isLive && current !== undefined && ahead !== undefined) {
    const { abortAt, killAt } = ahead;
    if (current === 'drain') coming.push({ level: 'abort', from: Math.max(end, abortAt), to: killAt, isAhead: true });
    if (current !== 'kill')
      coming.push({ level: 'kill', from: Math.max(end, killAt), to: killAt + 500, isAhead: true });
    const last = reached.at(-1);
    if (last !== undefined) last.to = Math.max(end, current === 'drain' ? abortAt : current === 'abort' ? killAt : end);
  }
  return [...reached, ...coming].map(({ level, from, to, isAhead }) => {
    const width = Math.max(0, toX(to) - toX(from));
    const words = isAhead
      ? `${level} in ${formatDuration(from - end)}`
      : `${level} ${formatDuration(Math.min(to, end) - from)}`;
    const label = words.length * CHARACTER + 8 <= width ? words : level.length * CHARACTER + 8 <= width ? level : '';
    return { level, x: toX(from), width, isAhead, label };
  });
}

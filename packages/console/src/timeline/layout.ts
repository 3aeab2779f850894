import { formatDuration, joinWords } from '../model/format.ts';
import type { CallModel, RunModel } from '../model/run-model.ts';
import { findSubject } from '../model/summary.ts';
import { type Band, CHARACTER, toBands } from './bands.ts';

/** What a timeline shows in addition to the run itself. */
export interface TimelineContext {
  /** Now, or when the task ended. */
  readonly end: number;
  readonly isLive: boolean;
  /** When the coming levels of a stop begin. */
  readonly ahead?: { readonly abortAt: number; readonly killAt: number };
  /** The width to draw in, in pixels. */
  readonly width: number;
}

export type BarKind = 'stream' | 'call' | 'finish' | 'approval' | 'abandoned' | 'cut';

/** A rectangle, in pixels. */
export interface Bar {
  readonly kind: BarKind;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A moment with a name, in pixels. */
export interface Mark {
  readonly x: number;
  readonly label: string;
}

/** A timeline in pixels. */
export interface TimelineLayout {
  readonly width: number;
  readonly height: number;
  /** The bottom of the lanes. */
  readonly floor: number;
  readonly lanes: readonly { readonly name: string; readonly isInner: boolean; readonly y: number }[];
  readonly lines: readonly number[];
  readonly bars: readonly Bar[];
  readonly labels: readonly { readonly x: number; readonly y: number; readonly text: string }[];
  readonly bands: readonly Band[];
  readonly marks: readonly Mark[];
  readonly ticks: readonly Mark[];
  readonly cancel?: Mark;
  readonly now?: Mark;
  /** The same story in one sentence. */
  readonly story: string;
}

const LANE = 26;
const INNER_LANE = 22;
const BAR = 15;
/** The dashed tail of an abandoned call. */
const TAIL = 44;
const TOP = 22;
/** Above the lanes of a stopped run: the levels. */
const TOP_STOPPED = 40;
/** Shorter waits for an approval were no question to a person. */
const MIN_ASKED_MS = 500;
const FOOT = 24;
const MAX_LANES = 14;
const MAX_ROWS = 4;
const MIN_LABEL = 48;
/** More calls than this have no labels inside their bars. */
const MAX_LABELLED = 60;
const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 86_400];

/** Lays out a run: one lane for the model, one for each tool, one for each run inside a call. */
export function layOut(run: RunModel, { end, isLive, ahead, width }: TimelineContext): TimelineLayout {
  const start = run.startedAt ?? end;
  const last = Math.max(end, isLive ? (ahead?.killAt ?? 0) + 500 : 0, start + 500);
  const hasTail = run.callList.some(({ state }) => state === 'unknown');
  const scale = (width - 8 - (hasTail ? TAIL : 0)) / (last - start);
  const toX = (at: number): number => 4 + (Math.min(at, last) - start) * scale;
  const { lanes, bars, labels, floor } = new Drawing(run, { start, end, toX }).draw();
  const lines = lanes.filter(({ isInner }) => !isInner).map(({ y }) => y);
  const cancelAt = run.levels[0]?.at;
  const by = run.levels[0]?.reason.by;
  return {
    width,
    height: floor + FOOT,
    floor,
    lanes,
    lines,
    bars,
    labels,
    bands: toBands(run, { end, isLive, ahead, toX }),
    marks: toMarks(run, toX),
    ticks: toTicks({ start, end, last, width, toX }),
    ...(cancelAt !== undefined && {
      cancel: { x: toX(cancelAt), label: by === undefined ? 'stop' : `stop by ${by}` },
    }),
    ...((isLive || cancelAt !== undefined) && {
      now: {
        x: toX(end),
        label: isLive ? `now${cancelAt === undefined ? '' : `, +${formatDuration(end - cancelAt)}`}` : 'settled',
      },
    }),
    story: tellStory(run, { start, end, isLive }),
  };
}

interface Space {
  readonly start: number;
  readonly end: number;
  readonly toX: (at: number) => number;
}

class Drawing {
  readonly #run: RunModel;
  readonly #space: Space;
  readonly #lanes: { name: string; isInner: boolean; y: number }[] = [];
  readonly #bars: Bar[] = [];
  readonly #labels: { x: number; y: number; text: string }[] = [];
  readonly #isLabelled: boolean;
  #y: number;

  constructor(run: RunModel, space: Space) {
    this.#run = run;
    this.#space = space;
    this.#isLabelled = run.calls.size <= MAX_LABELLED;
    this.#y = run.levels.length === 0 ? TOP : TOP_STOPPED;
  }

  draw() {
    this.#drawModel(this.#run, { name: 'model', isInner: false });
    const byTool = Map.groupBy(this.#run.callList.filter(isDrawn), ({ tool }) => tool);
    const shown = [...byTool].slice(0, MAX_LANES);
    const others = [...byTool].slice(MAX_LANES).flatMap(([, calls]) => calls);
    for (const [tool, calls] of shown) this.#drawTool(tool, calls);
    if (others.length > 0) this.#drawTool(`${byTool.size - MAX_LANES} other tools`, others);
    return { lanes: this.#lanes, bars: this.#bars, labels: this.#labels, floor: this.#y };
  }

  #drawModel(run: RunModel, { name, isInner }: { name: string; isInner: boolean }): void {
    const height = isInner ? INNER_LANE : LANE;
    this.#y += height;
    this.#lanes.push({ name, isInner, y: this.#y });
    for (const { startedAt, endedAt, isCut } of run.turns) {
      const bar = this.#bar('stream', { from: startedAt, to: endedAt ?? this.#space.end, y: this.#y - height + 5 });
      if (isCut) this.#cut(bar);
    }
  }

  #drawTool(tool: string, calls: readonly CallModel[]): void {
    const rows: number[] = [];
    const top = this.#y;
    for (const call of calls) {
      const from = call.askedAt ?? call.startedAt ?? this.#space.start;
      const to = call.endedAt ?? this.#space.end;
      const free = rows.findIndex((busyUntil) => busyUntil <= from);
      const row = free === -1 ? Math.min(rows.length, MAX_ROWS - 1) : free;
      rows[row] = Math.max(rows[row] ?? 0, to);
      this.#drawCall(call, top + row * LANE + 5);
    }
    this.#y = top + Math.max(1, rows.length) * LANE;
    this.#lanes.push({ name: tool, isInner: false, y: this.#y });
    for (const { nested } of calls) {
      if (nested === undefined) continue;
      this.#drawModel(nested, { name: nested.agent || 'sub-agent', isInner: true });
      const y = this.#y - INNER_LANE + 5;
      for (const call of nested.callList.filter(isDrawn)) this.#drawCall(call, y, { isInner: true });
    }
  }

  #drawCall(call: CallModel, y: number, { isInner = false }: { isInner?: boolean } = {}): void {
    const { askedAt, answeredAt, startedAt, endedAt, state } = call;
    const { end } = this.#space;
    const until = answeredAt ?? startedAt ?? endedAt ?? end;
    if (askedAt !== undefined && (call.question !== undefined || until - askedAt >= MIN_ASKED_MS)) {
      const bar = this.#bar('approval', { from: askedAt, to: until, y });
      if (!isInner) this.#label(bar, `approval ${formatDuration(until - askedAt)}`);
    }
    if (startedAt === undefined) return;
    const kind = call.waitsUntil === undefined ? 'call' : 'finish';
    const bar = this.#bar(kind, { from: startedAt, to: endedAt ?? end, y });
    if (!isInner) this.#label(bar, findSubject(call.input) || formatDuration((endedAt ?? end) - startedAt));
    if (state === 'interrupted') this.#cut(bar);
    if (state === 'unknown') this.#bars.push({ ...bar, kind: 'abandoned', x: bar.x + bar.width, width: TAIL - 4 });
  }

  #bar(kind: BarKind, { from, to, y }: { from: number; to: number; y: number }): Bar {
    const { toX } = this.#space;
    const x = toX(from);
    const bar = { kind, x, y, width: Math.max(2, toX(to) - x), height: BAR };
    this.#bars.push(bar);
    return bar;
  }

  #cut({ x, y, width }: Bar): void {
    this.#bars.push({ kind: 'cut', x: x + width - 4, y, width: 8, height: BAR });
  }

  #label({ x, y, width }: Bar, text: string): void {
    if (!this.#isLabelled || width < MIN_LABEL) return;
    const fitting = Math.floor((width - 12) / CHARACTER);
    const shown = text.replaceAll(/\s+/g, ' ');
    const cut = shown.length > fitting ? `${shown.slice(0, fitting - 1)}…` : shown;
    this.#labels.push({ x: x + 6, y: y + 11, text: cut });
  }
}

function isDrawn({ askedAt, startedAt }: CallModel): boolean {
  return askedAt !== undefined || startedAt !== undefined;
}

function toMarks({ turns, waves }: RunModel, toX: Space['toX']): Mark[] {
  const all = [
    ...turns.map(({ number, startedAt }) => ({ x: toX(startedAt), label: `turn ${number}` })),
    ...waves.map(({ number, startedAt }) => ({ x: toX(startedAt), label: `wave ${number}` })),
  ].sort((a, b) => a.x - b.x);
  let free = -Infinity;
  return all.flatMap(({ x, label }) => {
    if (x < free) return [];
    free = x + label.length * CHARACTER + 10;
    return [{ x, label }];
  });
}

function toTicks({ start, end, toX, last, width }: Space & { readonly last: number; readonly width: number }): Mark[] {
  const wanted = (last - start) / 1_000 / Math.max(2, width / 120);
  const step = STEPS.find((one) => one >= wanted) ?? STEPS.at(-1)!;
  const ticks: Mark[] = [];
  for (let at = start; at <= last && ticks.length < 40; at += step * 1_000) {
    const x = toX(at);
    if (x > toX(end) - 52) break;
    ticks.push({ x, label: ticks.length === 0 ? '0 s' : formatDuration(at - start).replace('.0 s', ' s') });
  }
  return ticks;
}

function tellStory(run: RunModel, { start, end, isLive }: { start: number; end: number; isLive: boolean }): string {
  const { levels } = run;
  const open = run.callList.filter(({ state }) => state === 'running').map(({ tool }) => tool);
  const runs =
    open.length === 0 ? '' : ` ${joinWords([...new Set(open)])} still ${open.length === 1 ? 'runs' : 'run'}.`;
  if (levels.length === 0) {
    const calls = run.calls.size;
    const verb = isLive ? 'Running for' : 'Ended after';
    return `${verb} ${formatDuration(end - start)}, with ${calls} ${calls === 1 ? 'call' : 'calls'}.${isLive ? runs : ''}`;
  }
  const lasted = levels.map(({ level, at }, i) => `${level} ${formatDuration((levels[i + 1]?.at ?? end) - at)}`);
  return `Cancelled ${formatDuration(levels[0]!.at - start)} after the start: ${joinWords(lasted)}.${isLive ? runs : ''}`;
}

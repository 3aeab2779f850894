import { type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react';
import type { RunModel } from '../model/run-model.ts';
import { type Bar, type BarKind, layOut, type Mark, type TimelineContext, type TimelineLayout } from './layout.ts';

const NAMES = 116;
const MIN_WIDTH = 560;
const CLASSES: Readonly<Record<BarKind, string>> = {
  stream: 's',
  call: 'b',
  finish: 'fi',
  approval: 'ap',
  abandoned: 'rd',
  cut: 'c',
};

interface TimelineProps {
  readonly run: RunModel;
  readonly context: Omit<TimelineContext, 'width'>;
  readonly label: string;
}

/** Draws a run as it went, and as it goes. */
export function Timeline({ run, context, label }: TimelineProps): ReactNode {
  const box = useRef<HTMLElement>(null);
  const [room, setRoom] = useState(0);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = (): void => setRoom(Math.floor(element.clientWidth));
    // It also measures at first, when the browser has laid the page out anyway.
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const layout = layOut(run, { ...context, width: Math.max(MIN_WIDTH, room - NAMES - 32) });
  useCancelInView(box, { layout, isDrawn: room > 0 });
  return (
    <section ref={box} className="scroll tlw" tabIndex={0} aria-label={`${label}, scrolls sideways`}>
      <Names layout={layout} />
      {room > 0 && <Lanes layout={layout} />}
    </section>
  );
}

/** Scrolls to the cancel once, where the timeline is wider than its box. */
function useCancelInView(
  box: { readonly current: HTMLElement | null },
  { layout: { cancel, now }, isDrawn }: { readonly layout: TimelineLayout; readonly isDrawn: boolean },
): void {
  const x = cancel?.x ?? now?.x;
  const isThere = x !== undefined && isDrawn;
  // biome-ignore lint/correctness/useExhaustiveDependencies: once there is something to look at, not each time it moves.
  useEffect(() => {
    const element = box.current;
    if (element !== null && isThere) element.scrollLeft = Math.max(0, x - (element.clientWidth - NAMES) / 2);
  }, [isThere, box]);
}

function Names({ layout: { lanes, lines, height } }: { readonly layout: TimelineLayout }): ReactNode {
  return (
    <svg className="tl names" width={NAMES} height={height} aria-hidden="true">
      <path className="g" d={lines.map((y) => `M0 ${y + 0.5}h${NAMES}`).join('')} />
      {lanes.map(({ name, isInner, y }) => (
        <text key={y} className={isInner ? 'k' : 'l'} x={isInner ? 8 : 0} y={y - 9}>
          {name.length > 17 ? `${name.slice(0, 16)}…` : name}
        </text>
      ))}
    </svg>
  );
}

function Lanes({ layout }: { readonly layout: TimelineLayout }): ReactNode {
  const { width, height, floor, lines, bars, labels, bands, marks, ticks, cancel, now, story } = layout;
  const title = useId();
  // A stopped run has its levels above the marks.
  const top = bands.length === 0 ? 4 : 22;
  const kinds = Map.groupBy(bars, ({ kind }) => kind);
  return (
    <svg className="tl" width={width} height={height} role="img" aria-labelledby={title}>
      <title id={title}>{story}</title>
      {bands.map(({ level, x, width: wide, isAhead }) => (
        <rect
          key={`${level}${x}`}
          className={isAhead ? `${level} ahead` : level}
          x={x}
          y={0}
          width={wide}
          height={floor}
        />
      ))}
      <path className="wv" d={marks.map(({ x }) => `M${x.toFixed(1)} ${top}V${floor}`).join('')} />
      <path className="g" d={lines.map((y) => `M0 ${y + 0.5}h${width}`).join('')} />
      {[...kinds].map(([kind, all]) => (
        <path key={kind} className={CLASSES[kind]} d={all.map(outline).join('')} />
      ))}
      {marks.map(({ x, label }) => (
        <text key={x} className="k" x={x + 3} y={top + 12}>
          {label}
        </text>
      ))}
      {labels.map(({ x, y, text }) => (
        <text key={`${x} ${y}`} className="l" x={x} y={y}>
          {text}
        </text>
      ))}
      {bands.map(({ level, x, label }) => (
        <text key={`${level}${x}`} className="am" x={x + 6} y={15}>
          {label}
        </text>
      ))}
      {ticks.map(({ x, label }) => (
        <text key={x} className="k" x={x} y={height - 6}>
          {label}
        </text>
      ))}
      {cancel && <Cancel {...cancel} floor={floor} />}
      {now && (
        <>
          <path className="now" d={`M${now.x.toFixed(1)} ${top}V${floor + 4}`} />
          <text className="l halo" textAnchor={now.x > width - 60 ? 'end' : 'middle'} x={now.x} y={height - 6}>
            {now.label}
          </text>
        </>
      )}
    </svg>
  );
}

function Cancel({ x, label, floor }: Mark & { readonly floor: number }): ReactNode {
  const isLeft = x > label.length * 7 + 8;
  return (
    <>
      <path className="cl" d={`M${x.toFixed(1)} 0V${floor}`} />
      {isLeft && (
        <text className="am" textAnchor="end" x={x - 6} y={15}>
          {label}
        </text>
      )}
    </>
  );
}

function outline({ x, y, width, height }: Bar): string {
  return `M${x.toFixed(1)} ${y}h${width.toFixed(1)}v${height}h-${width.toFixed(1)}z`;
}

import { carryStyles, readStyled, type Span } from './styled.ts';

/** The screens of several terminals at one time: the lines of each, with escapes. */
export interface Frame {
  readonly atMs: number;
  readonly screens: readonly (readonly string[])[];
}

export interface DrawOptions {
  readonly columns: number;
  readonly titles: readonly string[];
  readonly description: string;
}

/** One line of a terminal for as long as it stayed the same. */
interface Stay {
  readonly line: string;
  readonly fromMs: number;
  toMs: number;
}

const CHARACTER = 8.43;
const LINE = 19;
const PAD = 14;
const TITLE = 30;
const GAP = 14;
/** How long the last frame stays before the animation restarts. */
const HOLD_MS = 4_000;

/** Draws a recording as an animated SVG. With reduced motion it shows the end. */
export function drawRecording(recorded: readonly Frame[], { columns, titles, description }: DrawOptions): string {
  const frames = recorded.map(({ atMs, screens }) => ({ atMs, screens: screens.map(carryStyles) }));
  const totalMs = frames.at(-1)!.atMs + HOLD_MS;
  const width = Math.ceil(columns * CHARACTER + 2 * PAD);
  const motion = new Motion(totalMs);
  const body: string[] = [];
  let top = 0;
  for (const [index, title] of titles.entries()) {
    const rows = frames[0]!.screens[index]!.length;
    const height = TITLE + rows * LINE + PAD;
    body.push(drawWindow({ top, width, height, title }));
    for (let row = 0; row < rows; row++) {
      const y = top + TITLE + (row + 1) * LINE - 5;
      const lines = frames.map(({ atMs, screens }) => ({ atMs, line: screens[index]![row] ?? '' }));
      for (const stay of toStays(lines, totalMs)) body.push(drawLine(stay, y, motion));
    }
    top += height + GAP;
  }
  const size = `width="${width}" height="${top - GAP}" viewBox="0 0 ${width} ${top - GAP}"`;
  const font = 'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14"';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} ${font} xml:space="preserve" role="img"><title>${escapeXml(description)}</title>`,
    `<style>text{white-space:pre;fill:#e6edf3}.b{font-weight:700}.d{fill:#8b949e}${motion.css}</style>`,
    ...body,
    '</svg>\n',
  ].join('\n');
}

function drawWindow(at: { top: number; width: number; height: number; title: string }): string {
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, index) => `<circle cx="${20 + index * 18}" cy="${at.top + 16}" r="5" fill="${fill}"/>`,
  );
  const box = `<rect y="${at.top}" width="${at.width}" height="${at.height}" rx="8" fill="#0d1117"/>`;
  const title = `<text x="${at.width / 2}" y="${at.top + 20}" text-anchor="middle" class="d" font-size="12">${escapeXml(at.title)}</text>`;
  return `${box}${dots.join('')}${title}`;
}

function toStays(lines: readonly { readonly atMs: number; readonly line: string }[], totalMs: number): Stay[] {
  const stays: Stay[] = [];
  for (const { atMs, line } of lines) {
    const last = stays.at(-1);
    if (last?.line === line) continue;
    if (last !== undefined) last.toMs = atMs;
    stays.push({ line, fromMs: atMs, toMs: totalMs });
  }
  return stays.filter(({ line }) => line.trim() !== '');
}

function drawLine({ line, fromMs, toMs }: Stay, y: number, motion: Motion): string {
  const texts = readStyled(line)
    .filter(({ text }) => text.trim() !== '')
    .map((span) => drawSpan(span, y));
  return `<g ${motion.during(fromMs, toMs)}>${texts.join('')}</g>`;
}

function drawSpan({ column, text, color, isBold, isDim }: Span, y: number): string {
  const classes = [isBold && 'b', isDim && 'd'].filter(Boolean).join(' ');
  const style = `${classes && ` class="${classes}"`}${color && ` style="fill:${color}"`}`;
  const x = (PAD + column * CHARACTER).toFixed(1);
  // The length holds columns together whatever font the reader has.
  return `<text x="${x}" y="${y}" textLength="${(text.length * CHARACTER).toFixed(1)}"${style}>${escapeXml(text)}</text>`;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The animations, each written once: many lines appear and disappear together. */
class Motion {
  readonly #totalMs: number;
  readonly #names = new Map<string, string>();

  constructor(totalMs: number) {
    this.#totalMs = totalMs;
  }

  get css(): string {
    const seconds = (this.#totalMs / 1_000).toFixed(2);
    const rules = [...this.#names].map(
      ([frames, name]) => `@keyframes ${name}{${frames}}.${name}{animation:${name} ${seconds}s step-end infinite}`,
    );
    return `@media (prefers-reduced-motion:no-preference){${rules.join('')}}`;
  }

  /** Shows an element for a while. Without motion, only elements of the last frame are visible. */
  during(fromMs: number, toMs: number): string {
    const isLast = toMs >= this.#totalMs;
    if (fromMs <= 0 && isLast) return '';
    const at = (ms: number): string => `${((ms / this.#totalMs) * 100).toFixed(2)}%`;
    const end = isLast ? '' : `${at(toMs)}{visibility:hidden}`;
    const frames = `0%{visibility:hidden}${at(fromMs)}{visibility:visible}${end}`;
    const name = this.#names.get(frames) ?? `k${this.#names.size}`;
    this.#names.set(frames, name);
    return `class="${name}"${isLast ? '' : ' visibility="hidden"'}`;
  }
}

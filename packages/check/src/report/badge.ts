import type { CheckReport } from '../run-checks.ts';

const LABEL = 'stops when told';
const GREEN = '#2da44e';
const AMBER = '#bf8700';
const RED = '#cf222e';
/** About how wide a character is, in pixels. The text is stretched to fit, so it need not be exact. */
const CHARACTER = 6.6;
const PADDING = 10;

/**
 * Draws a badge: how many of the checks that apply were passed.
 *
 * @returns The badge as SVG.
 */
export function toBadge({ counts: { passed, failed, unclear } }: CheckReport): string {
  const applicable = passed + failed + unclear;
  const text = `${passed} of ${applicable}`;
  const color = applicable > 0 && passed === applicable ? GREEN : passed >= applicable * 0.8 ? AMBER : RED;
  const [left, right] = [measureWidth(LABEL), measureWidth(text)];
  const width = left + right;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="20" role="img" aria-label="${LABEL}: ${text}">
<title>${LABEL}: ${text}</title>
<rect width="${width}" height="20" rx="3" fill="#444c56"/>
<path d="M${left} 0h${right - 3}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-${right - 3}z" fill="${color}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
${textAt(LABEL, 0, left)}
${textAt(text, left, right)}
</g>
</svg>
`;
}

function measureWidth(text: string): number {
  return Math.round(text.length * CHARACTER) + PADDING;
}

function textAt(text: string, from: number, width: number): string {
  return `<text x="${from + PADDING / 2}" y="14" textLength="${width - PADDING}">${text}</text>`;
}

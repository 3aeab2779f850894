// The part of a page that campaigns write.

const BEGIN = '<!-- Written from docs/evidence/campaign-log.jsonl by the campaigns. -->';
const END = '<!-- The end of what campaigns write. -->';

/** Replaces the part of a page that campaigns write. */
export function replaceWritten(page: string, text: string): string {
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new SyntaxError(`the page has no '${BEGIN}' or no '${END}'`);
  return `${before}${BEGIN}\n\n${text}\n\n${END}${after}`;
}

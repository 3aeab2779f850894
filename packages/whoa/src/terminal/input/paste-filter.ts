export const ESCAPE = '\x1b';
/** How long the rest of an escape sequence may take. Without it, the Esc key was pressed. */
const ESCAPE_MS = 50;
const [START, END] = ['\x1b[200~', '\x1b[201~'];
const CTRL_C = '\x03';
const INCOMPLETE = new RegExp(`${ESCAPE}+(?:\\[[\\d;]*|O)?$`);
/** Longer pastes are cut. */
const MAX_CHARACTERS = 1_000_000;
/** Longer pastes are shown as a label. */
const MAX_SHOWN_CHARACTERS = 500;
const MAX_LABELS = 100;
/** Stands for a line feed in a line. */
export const LINE_FEED = '⏎';

/** Makes a paste one short text: line feeds become `⏎`, and a long paste a label. Escape sequences arrive whole, Esc alone. */
export class PasteFilter {
  readonly #onKeys: (keys: string) => void;
  readonly #labels = new Map<string, string>();
  /** The beginning of an escape sequence whose rest has not arrived. */
  #held = '';
  #timer: NodeJS.Timeout | undefined;
  #paste: string | undefined;
  #count = 0;

  constructor(onKeys: (keys: string) => void) {
    this.#onKeys = onKeys;
  }

  write(chunk: string): void {
    clearTimeout(this.#timer);
    // If the end of a paste is lost, Ctrl-C must still work.
    if (chunk === CTRL_C && this.#paste !== undefined) this.#onKeys(CTRL_C);
    for (let rest: string | undefined = this.#held + chunk; rest !== undefined; ) rest = this.#read(rest);
    if (this.#held === '' || this.#paste !== undefined) return;
    this.#timer = setTimeout(() => {
      const held = this.#held;
      this.#held = '';
      for (const keys of held.startsWith('\x1b\x1b') ? held : [held]) this.#onKeys(keys);
    }, ESCAPE_MS);
  }

  /** Returns how many characters Backspace removes at the end of a line: one, or a whole label. */
  lastLength(line: string): number {
    return [...this.#labels.keys()].find((label) => line.endsWith(label))?.length ?? 1;
  }

  /** Returns the text that a line stands for, and the same with labels. */
  expand(line: string): { readonly text: string; readonly shown: string } {
    const shown = line.replaceAll(LINE_FEED, '\n').trim();
    return { text: shown.replaceAll(/\[paste [^\]]*\]/g, (label) => this.#labels.get(label) ?? label).trim(), shown };
  }

  /** Reads keys up to the next paste, or a paste up to its end. Returns the rest. */
  #read(text: string): string | undefined {
    const mark = this.#paste === undefined ? START : END;
    const at = text.indexOf(mark);
    this.#held = at === -1 ? (INCOMPLETE.exec(text)?.[0] ?? '') : '';
    const part = text.slice(0, at === -1 ? text.length - this.#held.length : at);
    if (this.#paste !== undefined) this.#paste += part.slice(0, MAX_CHARACTERS - this.#paste.length);
    else if (part !== '') this.#onKeys(part);
    if (at === -1) return undefined;
    if (this.#paste !== undefined) this.#onKeys(this.#shorten(this.#paste));
    this.#paste = this.#paste === undefined ? '' : undefined;
    return text.slice(at + mark.length);
  }

  /** Readline takes U+2028 and U+2029 for Enter, so a paste with one of them becomes a label too. */
  #shorten(paste: string): string {
    const text = paste.replaceAll(/\r\n?/g, '\n').replaceAll(/[^\P{Cc}\n\t]/gu, '');
    if (text.length <= MAX_SHOWN_CHARACTERS && !/[\u2028\u2029⏎]/.test(text)) return text.replaceAll('\n', LINE_FEED);
    const lines = text.trimEnd().split('\n').length;
    const size = (lines > 1 ? lines : text.length).toLocaleString('en');
    const unit = `${lines > 1 ? 'lines' : 'characters'}${paste.length < MAX_CHARACTERS ? '' : ', cut'}`;
    const label = `[paste ${++this.#count}: ${size} ${unit}]`;
    this.#labels.set(label, text);
    if (this.#labels.size > MAX_LABELS) this.#labels.delete(this.#labels.keys().next().value!);
    return label;
  }
}

import { VirtualClock } from '@whoa/core/testing';
import { expect, test } from 'vitest';
import { Screen } from './screen.ts';

function output(isTTY: boolean) {
  let error: ((error: NodeJS.ErrnoException) => void) | undefined;
  const written: string[] = [];
  return {
    isTTY,
    columns: 80,
    written,
    write: (text: string) => written.push(text),
    on: (_: 'error', listener: (error: NodeJS.ErrnoException) => void) => {
      error = listener;
    },
    fail: () => error?.(new Error('EPIPE')),
    get text() {
      return written.join('');
    },
  };
}

test('a progress indicator appears after a second of silence, and disappears without a trace', async () => {
  const [stdout, stderr, clock] = [output(true), output(true), new VirtualClock()];
  const screen = new Screen({ stdout, stderr, clock });
  screen.status(() => 'thinking');
  await clock.advance(999);
  expect(stderr.text).toBe('');
  await clock.advance(1);
  expect(stderr.text).toMatch(/thinking · 1 s/);
  // Saved, unwrapped, restored: the cursor is where it was.
  expect(stderr.written.at(-1)!.startsWith('\x1b7\x1b[?7l')).toBe(true);
  expect(stderr.written.at(-1)!.endsWith('\x1b[?7h\x1b8')).toBe(true);
  screen.say('Hello');
  expect(stderr.written.at(-1)).toBe('\x1b[K');
  await clock.advance(900);
  expect(stderr.written.at(-1)).toBe('\x1b[K');
  screen[Symbol.dispose]();
  expect(clock.pending).toBe(0);
});

test('a terminal that does not know its size is taken for one of 80 columns and 24 rows', () => {
  const stderr = { ...output(true), columns: 0, rows: 0 };
  const { columns, rows } = new Screen({ stdout: output(true), stderr });
  expect({ columns, rows }).toEqual({ columns: 80, rows: 24 });
});

test('piped output gets only the answer, without progress or escapes', async () => {
  const [stdout, stderr, clock] = [output(false), output(false), new VirtualClock()];
  const screen = new Screen({ stdout, stderr, clock });
  screen.status(() => 'thinking');
  screen.say('One ');
  screen.note(screen.style('red', 'aside'));
  screen.say('two\x1b[1m');
  await clock.advance(60_000);
  screen.endLine();
  expect(stdout.text).toBe('One two\x1b[1m\n');
  expect(stderr.text).toBe('aside\n');
});

test('a note starts on a new line on a terminal', () => {
  const [stdout, stderr] = [output(true), output(true)];
  const screen = new Screen({ stdout, stderr });
  screen.say('Half a\x1b[31m line');
  screen.note('note');
  expect(stdout.text).toBe('Half a<U+001B>[31m line\n');
  expect(stderr.text).toBe('\r\x1b[Knote\n');
});

test('the screen is notified once when its output is closed', () => {
  const [stdout, stderr] = [output(false), output(false)];
  let gone = 0;
  new Screen({ stdout, stderr, onGone: () => gone++ });
  stdout.fail();
  stdout.fail();
  stderr.fail();
  expect(gone).toBe(1);
});

test('output is held back during a question, and shown in order afterwards', async () => {
  const [stdout, stderr, clock] = [output(true), output(true), new VirtualClock()];
  const screen = new Screen({ stdout, stderr, clock });
  screen.status(() => 'thinking');
  const held = screen.hold();
  screen.say('One');
  screen.note('note');
  screen.say('Two');
  await clock.advance(5_000);
  expect(stdout.text + stderr.text).toBe('');
  held[Symbol.dispose]();
  expect(stdout.text).toBe('One\nTwo');
  expect(stderr.text).toBe('\r\x1b[Knote\n');
  await clock.advance(1_000);
  expect(stderr.text).toContain('thinking');
  screen[Symbol.dispose]();
});

/** The last output, without styles. */
function getLast({ written }: { readonly written: readonly string[] }): string {
  return written.at(-1)!.replaceAll('\x1b[1m', '').replaceAll('\x1b[22m', '');
}

test('the line that is typed stays below the output, and whole lines of the reply go above it', () => {
  const [stdout, stderr] = [output(true), output(true)];
  const screen = new Screen({ stdout, stderr });
  screen.say('Half a');
  screen.input('be b', 4);
  expect(stdout.text).toBe('Half a\n');
  expect(getLast(stderr)).toBe('\r\x1b[K› be b');
  screen.say(' line');
  expect(stdout.text).toBe('Half a\n');
  screen.say(' more.\nNext');
  expect(stdout.text).toBe('Half a\n line more.\n');
  expect(getLast(stderr)).toBe('\r\x1b[K› be b');
  screen.input(undefined);
  expect(stdout.text).toBe('Half a\n line more.\nNext');
  screen.input('x\x1b[31m\u202e', 0);
  expect(getLast(stderr)).toBe('\r\x1b[K› \x1b7x<U+001B>[31m<U+202E>\x1b8');
  for (const cursor of [0, 400, 1_000]) {
    screen.input('y'.repeat(1_000), cursor);
    expect(getLast(stderr).length).toBeLessThan(90);
  }
});

test('the line that is typed is not drawn over a question, and comes back after it', () => {
  const [stdout, stderr] = [output(true), output(true)];
  const screen = new Screen({ stdout, stderr });
  screen.input('be b', 4);
  const held = screen.hold();
  screen.input('be br', 5);
  held.input('no', 1, 'why not: ');
  expect(getLast(stderr)).toBe('\r\x1b[Kwhy not: n\x1b7o\x1b8');
  held.endInput();
  expect(getLast(stderr)).toBe('\n');
  held[Symbol.dispose]();
  expect(getLast(stderr)).toBe('\r\x1b[K› be br');
});

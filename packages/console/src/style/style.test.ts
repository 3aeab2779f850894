import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const SOURCE = join(import.meta.dirname, '..');

const read = (pattern: string): string =>
  globSync(pattern, { cwd: SOURCE, exclude: ['**/*.test.ts'] })
    .map((file) => readFileSync(join(SOURCE, file), 'utf8'))
    .join('\n');

const styles = read('style/*.css').replaceAll(/\/\*.*?\*\//gs, '');

/** Every word of a string or template: class names are never put together from parts of words. */
const words = new Set(
  [...read('**/*.{ts,tsx}').matchAll(/(["'`])((?:\\.|(?!\1)[^\\])*)\1/g)].flatMap(([, , text]) =>
    text!.split(/[^\w-]+/),
  ),
);

const named = (pattern: RegExp): string[] => [...new Set([...styles.matchAll(pattern)].map(([, name]) => name!))];

test('every class in the styles is used by a page', () => {
  const classes = named(/\.([a-z][\w-]*)(?=[^{}]*\{)/gi);
  expect(classes.length).toBeGreaterThan(100);
  expect(classes.filter((name) => !words.has(name))).toEqual([]);
});

test('every value in the styles is used, and every value that is used exists', () => {
  const defined = named(/(--[\w-]+):/g);
  // The colours of terminal output are chosen by their number.
  const used = [...named(/var\((--[\w-]+)\)/g), ...[1, 2, 3, 4, 5, 6].map((color) => `--a${color}`)];
  expect(defined.toSorted()).toEqual([...new Set(used)].toSorted());
});

test('the console and the docs have one mark and one accent', () => {
  const docs = join(SOURCE, '../../../docs');
  const icon = readFileSync(join(SOURCE, '../public/icon.svg'), 'utf8');
  expect(icon).toBe(readFileSync(join(docs, 'public/icon.svg'), 'utf8'));
  const accents = [...styles.matchAll(/--amber(?:-solid)?: light-dark\((#\w+), (#\w+)\)/g)].flat();
  const [, text, textOnDark, , solid] = accents;
  expect(icon).toContain(`fill="${solid}"`);
  const site = readFileSync(join(docs, '.vitepress/theme/site.css'), 'utf8');
  expect([...site.matchAll(/--vp-c-brand-[13]: (#\w+)/g)].map(([, color]) => color)).toEqual([
    text,
    solid,
    textOnDark,
    solid,
  ]);
});

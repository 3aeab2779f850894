import { expect, test } from 'vitest';
import { COMMANDS } from './command-table.ts';

test.each(Object.entries(COMMANDS))('the help of %s names every option', async (name, { load }) => {
  const { help, options } = (await load()).command;
  expect(help.startsWith(`whoa ${name}`)).toBe(true);
  const missing = Object.keys(options).filter((option) => !help.includes(`--${option}`));
  expect(missing).toEqual([]);
  // No other options are listed, except the common ones and those of other commands that it mentions.
  const named = [...help.matchAll(/^ {2,4}--([\w-]+)/gm)].map(([, option]) => option!);
  expect(named.filter((option) => !Object.hasOwn(options, option) && option !== 'json')).toEqual([]);
});

// Lints the rules that Redis runs, as the one text that it gets: a file alone does not show which names are known.
import { spawnSync } from 'node:child_process';
import { FILES, RULES } from '../packages/tasks/src/stores/redis/library.ts';
import { RULE_FILES } from '../packages/tasks/src/stores/redis/lua/rule-files.ts';

/** The globals that Redis offers and the rules may use. */
const KNOWN = [
  'redis',
  'cjson',
  'unpack',
  'string',
  'table',
  'math',
  'tonumber',
  'tostring',
  'ipairs',
  'pairs',
  'setmetatable',
];
/** The code that the texts append. */
const USES = 'return run\n';

/** Returns the file and line of a line in the whole text. */
function toPlace(line: number): string {
  let first = 1;
  for (const name of FILES) {
    const lines = RULE_FILES[`${name}.lua`]!.split('\n').length;
    if (line < first + lines) return `packages/tasks/src/stores/redis/lua/${name}.lua:${line - first + 1}`;
    first += lines;
  }
  return 'the end of the text';
}

const unused = Object.keys(RULE_FILES).filter((file) => !FILES.includes(file.replace('.lua', '')));
for (const file of unused) console.error(`${file} is not part of the rules; name it in stores/redis/library.ts`);
const args = ['--std', 'none', '--read-globals', ...KNOWN, '--max-line-length', '140', '--no-color'];
const { error, stdout, status } = spawnSync('luacheck', [...args, '--formatter', 'plain', '-'], {
  input: `${RULES}\n${USES}`,
  encoding: 'utf8',
});
if (error) console.error(`luacheck cannot be run (${error.message}); on Debian: apt-get install lua-check`);
else console.error(stdout.replaceAll(/^stdin:(\d+)/gm, (_, line: string) => toPlace(Number(line))));
process.exitCode = error || unused.length > 0 ? 1 : (status ?? 1);

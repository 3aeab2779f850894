import { createHash } from 'node:crypto';
import { RULE_FILES } from './lua/rule-files.ts';
import { OPERATIONS, type Operation, type OperationName } from './operations.ts';

/** The files in an order in which each uses only what is in those before it. */
export const FILES: readonly string[] =
  'rules call layout task transitions questions stage stop conversation admit purge create cancel session answer hold take work sweep read overview'.split(
    ' ',
  );

/** All rules as one text. */
export const RULES: string = FILES.map((name) => RULE_FILES[`${name}.lua`]).join('\n');

/** The names of libraries, of any version. */
export const LIBRARY_NAME: RegExp = /^whoa_[0-9a-f]{16}$/;

/** The rules as a server gets them: a library of functions, or scripts. */
export interface Library {
  /** Other rules have another name, so versions of Whoa can share a server. */
  readonly name: string;
  readonly source: string;
  toFunction(name: OperationName): string;
  toScript(name: OperationName): Script;
}

/** A text that a server runs; it gets the name of the operation as the last argument. */
type Script = Readonly<Record<'source' | 'sha', string>>;

/** With them a server that cannot write refuses an operation before it starts, not half-way. */
const FLAGS = { reads: 'no-writes', writes: '', writesAlways: 'allow-oom' };

export function createLibrary(rules: string): Library {
  const name = `whoa_${digest('sha256', rules + JSON.stringify(OPERATIONS)).slice(0, 16)}`;
  const functions = new Map(Object.keys(OPERATIONS).map((one) => [one as OperationName, `${name}_${one}`]));
  const registered = [...functions].map(([one, function_name]) => {
    const flag = FLAGS[OPERATIONS[one].mode];
    return `redis.register_function{ function_name = '${function_name}', flags = { ${flag && `'${flag}'`} },
  callback = function(keys, args) return run('${one}', ${toCanWrite(one)}, keys, args) end }`;
  });
  const scripts = new Map<string, Script>();
  return {
    name,
    source: [`#!lua name=${name}`, rules, ...registered].join('\n'),
    toFunction: (one) => functions.get(one)!,
    toScript(one) {
      const flag = FLAGS[OPERATIONS[one].mode];
      const start = flag === '' ? '#!lua' : `#!lua flags=${flag}`;
      const end = `local name = table.remove(ARGV)\nreturn run(name, ${toCanWrite(one)}, KEYS, ARGV)`;
      // Operations that run alike share one.
      const known = scripts.get(start + end);
      if (known !== undefined) return known;
      const source = [start, rules, end].join('\n');
      const made = { source, sha: digest('sha1', source) };
      scripts.set(start + end, made);
      return made;
    },
  };
}

function toCanWrite(name: OperationName): string {
  const { mode, isUnchecked }: Operation = OPERATIONS[name];
  return isUnchecked ? 'nil' : `${mode !== 'reads'}`;
}

function digest(algorithm: string, text: string): string {
  return createHash(algorithm).update(text).digest('hex');
}

export const LIBRARY: Library = createLibrary(RULES);

// The public API of the packages, read from the declarations that the compiler wrote: every entry in `exports`, every
// name in an entry, and the declaration behind each name.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';

export const ROOT: string = join(import.meta.dirname, '../..');

/** One entry of a package, for example `@whoa/core/testing`. */
export interface Entry {
  readonly folder: string;
  /** The import specifier. */
  readonly specifier: string;
  /** Its subpath as part of a file name: empty for the package itself, else for example `.testing`. */
  readonly report: string;
  readonly names: readonly PublicName[];
}

export interface PublicName {
  readonly name: string;
  /** The package that declares it, if it is another one. */
  readonly from?: string;
  /** Missing if another package declares it. */
  readonly declaration?: Declaration;
}

/** A top-level declaration of one declaration file. Overloads are one declaration. */
export interface Declaration {
  readonly file: string;
  readonly name: string;
  readonly kind: 'function' | 'class' | 'interface' | 'type' | 'const' | 'namespace';
  /** The text between the marks of its doc comment; empty without one. */
  readonly doc: string;
  /** Without comments and `export declare`. */
  readonly text: string;
  /** Every identifier in it. */
  readonly mentions: ReadonlySet<string>;
}

interface DeclarationFile {
  readonly declarations: ReadonlyMap<string, Declaration>;
  /** Names that this file takes from another, or passes on from it: local name → where it is declared. */
  readonly links: ReadonlyMap<string, { readonly specifier: string; readonly name: string }>;
  /** The exported names: exported name → local name. */
  readonly exported: ReadonlyMap<string, string>;
}

/** The part of a syntax tree that we use. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

const KINDS: Readonly<Record<string, Declaration['kind']>> = {
  TSDeclareFunction: 'function',
  FunctionDeclaration: 'function',
  ClassDeclaration: 'class',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
  VariableDeclaration: 'const',
};

const files = new Map<string, DeclarationFile>();

/** Reads every entry of every package. The packages must be built. */
export function readEntries(): Entry[] {
  return readdirSync(join(ROOT, 'packages')).flatMap((folder) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'packages', folder, 'package.json'), 'utf8')) as {
      readonly name: string;
      readonly private?: boolean;
      readonly exports?: Record<string, string | { readonly types: string }>;
    };
    if (manifest.private === true) return [];
    return Object.entries(manifest.exports ?? {}).flatMap(([subpath, target]) =>
      typeof target === 'string'
        ? []
        : [
            readEntry(
              { folder, specifier: manifest.name + subpath.slice(1), report: subpath.slice(1).replaceAll('/', '.') },
              target.types,
            ),
          ],
    );
  });
}

function readEntry(about: Omit<Entry, 'names'>, types: string): Entry {
  const file = join(ROOT, 'packages', about.folder, types);
  const names = [...readFile(file).exported.keys()].toSorted().map((name) => readName(file, name));
  return { ...about, names };
}

function readName(entry: string, name: string): PublicName {
  const found = resolve(entry, name);
  return typeof found === 'string' ? { name, from: found } : { name, declaration: found };
}

/** Follows an exported name to its declaration, or to its package. */
function resolve(file: string, exported: string): Declaration | string {
  const { declarations, exported: names } = readFile(file);
  const local = names.get(exported) ?? exported;
  const declaration = declarations.get(local) ?? resolveLink(file, local);
  if (declaration === undefined) throw new Error(`${file} exports ${exported}, and nothing declares it`);
  return declaration;
}

function resolveLink(file: string, local: string): Declaration | string | undefined {
  const link = readFile(file).links.get(local);
  if (link === undefined) return undefined;
  if (!link.specifier.startsWith('.')) return link.specifier;
  const target = join(dirname(file), link.specifier.replace(/\.ts$/, '.d.ts').replace(/\.js$/, '.d.ts'));
  return link.name === '*' ? readNamespace(target, local) : resolve(target, link.name);
}

/** A whole file that is exported under one name. */
function readNamespace(file: string, name: string): Declaration {
  const { exported } = readFile(file);
  const members = [...exported.keys()].toSorted().map((member) => resolve(file, member));
  const declarations = members.filter((member) => typeof member !== 'string');
  const text = `namespace ${name} {\n${declarations.map((member) => member.text.replaceAll(/^/gm, '  ')).join('\n')}\n}`;
  return { file, name, kind: 'namespace', doc: 'A namespace.', text, mentions: new Set() };
}

/** The declarations of the same package that the given ones refer to, recursively. It does not enter `known` ones. */
export function findReachable(given: readonly Declaration[], known: ReadonlySet<Declaration>): Declaration[] {
  const found = new Set(given);
  for (const declaration of found) {
    for (const name of declaration.mentions) {
      const target = readFile(declaration.file).declarations.get(name) ?? resolveLink(declaration.file, name);
      if (typeof target === 'object' && !known.has(target)) found.add(target);
    }
  }
  return [...found].slice(given.length).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

function readFile(path: string): DeclarationFile {
  const known = files.get(path);
  if (known !== undefined) return known;
  const source = readFileSync(path, 'utf8');
  const declarations = new Map<string, Declaration>();
  const links = new Map<string, { specifier: string; name: string }>();
  const exported = new Map<string, string>();
  let end = 0;
  for (const statement of parseAst(source, { lang: 'dts' }, path).body as unknown as Node[]) {
    const doc = docBefore(source.slice(end, statement.start));
    end = statement.end;
    readLinks(statement, links, exported);
    const declared = (statement['declaration'] as Node | null | undefined) ?? statement;
    const kind = KINDS[declared.type];
    if (kind === undefined) continue;
    const name = getName(declared);
    if (declared !== statement) exported.set(name, name);
    const before = declarations.get(name);
    const text = [before?.text, toText(source.slice(declared.start, declared.end))].filter(Boolean).join('\n');
    const mentions = new Set([...(before?.mentions ?? []), ...findMentions(declared)]);
    declarations.set(name, { file: path, name, kind, doc: before?.doc || doc, text, mentions });
  }
  const file = { declarations, links, exported };
  files.set(path, file);
  return file;
}

function readLinks(
  statement: Node,
  links: Map<string, { specifier: string; name: string }>,
  exported: Map<string, string>,
): void {
  const specifier = (statement['source'] as { value: string } | null | undefined)?.value;
  const named = (node: unknown): string => (node as { name: string }).name;
  if (statement.type === 'ExportAllDeclaration') {
    if (statement['exported'] === null) throw new Error('`export *` hides what is exported; write the names');
    links.set(named(statement['exported']), { specifier: specifier!, name: '*' });
    exported.set(named(statement['exported']), named(statement['exported']));
  }
  for (const item of (statement['specifiers'] as Node[] | undefined) ?? []) {
    if (statement.type === 'ImportDeclaration') {
      const name = item.type === 'ImportNamespaceSpecifier' ? '*' : named(item['imported'] ?? item['local']);
      links.set(named(item['local']), { specifier: specifier!, name });
    } else {
      const name = named(item['exported']);
      if (specifier !== undefined) links.set(name, { specifier, name: named(item['local']) });
      exported.set(name, specifier === undefined ? named(item['local']) : name);
    }
  }
}

function getName(declared: Node): string {
  const [first] = (declared['declarations'] as Node[] | undefined) ?? [declared];
  return (first!['id'] as { name: string }).name;
}

/** The doc comment at the very end of the text between two statements. */
function docBefore(between: string): string {
  const start = between.lastIndexOf('/**');
  if (start === -1 || !/\*\/\s*$/.test(between)) return '';
  return between
    .slice(start + 3, between.lastIndexOf('*/'))
    .replaceAll(/^[ \t]*\* ?/gm, '')
    .trim();
}

function toText(declared: string): string {
  return declared
    .replaceAll(/^[ \t]*\/\*\*.*?\*\/[ \t]*\n/gms, '')
    .replaceAll(/\/\*\*.*?\*\/ ?/gs, '')
    .replace(/^(?:export )?(?:declare )?/, '');
}

function findMentions(node: unknown, found: Set<string> = new Set()): Set<string> {
  if (Array.isArray(node)) for (const item of node) findMentions(item, found);
  else if (typeof node === 'object' && node !== null) {
    const { type, name } = node as Node;
    if (type === 'Identifier') found.add(name as string);
    for (const value of Object.values(node)) findMentions(value, found);
  }
  return found;
}

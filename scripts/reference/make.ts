// Writes the API reference of the site, docs/reference/api: one page for each entry of each package, made by TypeDoc.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const here = import.meta.dirname;
const root = join(here, '../..');
const out = join(root, 'docs/reference/api');
const work = join(root, '.cache/reference');
const SOURCE = '@whoa/source';

type Exports = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

interface Entry {
  /** The import specifier. */
  readonly specifier: string;
  readonly source: string;
}

function readEntries(folder: string): Entry[] {
  const text = readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8');
  // Private packages have no entries.
  const { name, exports = {} } = JSON.parse(text) as { name: string; exports?: Exports };
  return Object.entries(exports)
    .flatMap(([key, target]) => {
      const source = typeof target === 'string' ? undefined : target[SOURCE];
      return source === undefined || key === './internal' // for our own packages
        ? []
        : [{ specifier: join(name, key), source: join(root, 'packages', folder, source) }];
    })
    .filter(({ source }) => /^export/m.test(readFileSync(source, 'utf8')));
}

/** TypeDoc names a page after its file, so each entry gets a file that is named as people import it. */
function writeEntry({ specifier, source }: Entry): string {
  const file = join(work, 'entries', `${specifier}.ts`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `/** @module ${specifier} */\nexport * from '${relative(dirname(file), source)}';\n`);
  return file;
}

const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { repository: { url: string } };
const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');

rmSync(out, { recursive: true, force: true });
rmSync(work, { recursive: true, force: true });
const entries = readdirSync(join(root, 'packages')).flatMap(readEntries).map(writeEntry);

if (!existsSync(join(here, 'node_modules'))) {
  execFileSync('npm', ['ci', '--ignore-scripts', '--prefix', here], { stdio: 'inherit' });
}
const tsconfig = join(work, 'tsconfig.json');
writeFileSync(
  tsconfig,
  JSON.stringify({
    extends: relative(work, join(root, 'tsconfig.base.json')),
    compilerOptions: {
      composite: false,
      incremental: false,
      noEmit: true,
      allowImportingTsExtensions: true,
      rewriteRelativeImportExtensions: false,
      lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'],
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      customConditions: [SOURCE],
    },
    files: entries,
  }),
);
const options = join(work, 'typedoc.json');
writeFileSync(
  options,
  JSON.stringify({
    plugin: [join(here, 'node_modules/typedoc-plugin-markdown/dist/index.js')],
    entryPoints: entries,
    tsconfig,
    out,
    router: 'module',
    entryFileName: 'index',
    flattenOutputFiles: true,
    readme: 'none',
    name: 'API',
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    gitRevision: 'main',
    sourceLinkTemplate: `${address}/blob/main/{path}#L{line}`,
    disableGit: true,
    basePath: root,
    hideBreadcrumbs: true,
    hidePageHeader: true,
    useCodeBlocks: true,
    expandParameters: true,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    enumMembersFormat: 'table',
    typeDeclarationFormat: 'table',
    propertyMembersFormat: 'table',
    logLevel: 'Error',
  }),
);
execFileSync(process.execPath, [join(here, 'node_modules/typedoc/bin/typedoc'), '--options', options], {
  cwd: root,
  stdio: 'inherit',
});

/** `@whoa.core.testing.md` becomes `core-testing.md`: an address that every server of static files understands. */
const plainNames = (text: string): string =>
  text.replaceAll(/@whoa\.([\w.-]+)\.md/g, (_, name: string) => `${name.replaceAll('.', '-')}.md`);

for (const name of readdirSync(out)) {
  const page = join(out, name);
  writeFileSync(page, plainNames(readFileSync(page, 'utf8')));
  renameSync(page, join(out, plainNames(name)));
}

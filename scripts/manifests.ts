// The repository fields of every package, derived from the one address in the root's package.json, so that moving the
// repository is
// one change: npm run manifests writes them, and npm run check finds differences.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = join(import.meta.dirname, '..');
const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const { repository } = JSON.parse(read('package.json')) as {
  repository: { readonly type: string; readonly url: string };
};
const address = repository.url.replace(/^git\+/, '').replace(/\.git$/, '');
/** A link in a package's README is read on the registry's page, where no neighbour folder is. */
const RELATIVE = /\]\((?:\.\.\/)+([^)]+)\)/g;

const problems: string[] = [];

/** Writes a file as it should be, or complains. */
function settle(path: string, wanted: string): void {
  if (read(path) === wanted) return;
  if (values.write) writeFileSync(join(root, path), wanted);
  else problems.push(`${path} differs from what the repository's address makes of it; run: npm run manifests`);
}

for (const folder of readdirSync(join(root, 'packages'))) {
  const [manifestPath, readmePath] = [`packages/${folder}/package.json`, `packages/${folder}/README.md`];
  const manifest = JSON.parse(read(manifestPath)) as Record<string, unknown>;
  const { name, version, description, keywords, license, ...rest } = manifest;
  // Unpublished packages need no metadata for users.
  if (manifest['private'] === true) continue;
  if (keywords === undefined) problems.push(`${manifestPath} has no keywords: nobody would find it`);
  const origin = {
    homepage: `${address}/tree/main/packages/${folder}#readme`,
    bugs: `${address}/issues`,
    repository: { ...repository, directory: `packages/${folder}` },
  };
  const wanted = { name, version, description, keywords, license, ...origin, ...rest, ...origin };
  settle(manifestPath, `${JSON.stringify(wanted, undefined, 2)}\n`);
  settle(readmePath, read(readmePath).replaceAll(RELATIVE, `](${address}/blob/main/$1)`));
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

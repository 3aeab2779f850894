// The software bill of materials of a release: all our packages and everything that is installed with them, as CycloneDX.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../..');
/** The official validator, with the schemas that it holds. Installed on first use. */
const VALIDATOR = {
  '@cyclonedx/cyclonedx-library': '10.3.0',
  ajv: '8.20.0',
  'ajv-formats': '3.0.1',
  'ajv-formats-draft2019': '1.6.1',
};

interface Component {
  readonly name: string;
  readonly version: string;
  readonly group?: string;
  readonly purl?: string;
  readonly hashes?: readonly unknown[];
}

interface Bom {
  readonly specVersion: string;
  readonly components: readonly Component[];
}

interface Library {
  readonly Validation: {
    readonly JsonStrictValidator: new (version: string) => { validate(text: string): Promise<unknown> };
  };
}

/** Writes the bill of an installed project into a file, and checks that it is valid and lists our packages. */
export async function writeSbom(project: string, file: string, versions: ReadonlyMap<string, string>): Promise<void> {
  const args = ['sbom', '--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--omit', 'dev'];
  const text = execFileSync('npm', args, { cwd: project, encoding: 'utf8', maxBuffer: 2 ** 27 });
  const { specVersion, components } = JSON.parse(text) as Bom;
  const { Validation } = createRequire(installValidator())('@cyclonedx/cyclonedx-library') as Library;
  const fault = await new Validation.JsonStrictValidator(specVersion).validate(text);
  if (fault !== null) throw new Error(`the SBOM is not valid CycloneDX ${specVersion}: ${JSON.stringify(fault)}`);
  const listed = new Map(components.map((one) => [one.name, one]));
  for (const [name, version] of versions) {
    if (listed.get(name)?.version !== version) throw new Error(`the SBOM does not list ${name} ${version}`);
  }
  const unhashed = components.filter(({ hashes = [] }) => hashes.length === 0);
  if (unhashed.length > 0) throw new Error(`the SBOM has no hash of ${unhashed.map(({ name }) => name).join(', ')}`);
  writeFileSync(file, text);
  console.log(`SBOM: valid CycloneDX ${specVersion} with ${components.length} components, in ${file}`);
}

function installValidator(): string {
  const folder = join(root, '.cache/sbom');
  const manifest = join(folder, 'package.json');
  if (existsSync(join(folder, 'node_modules'))) return manifest;
  mkdirSync(folder, { recursive: true });
  writeFileSync(manifest, JSON.stringify({ private: true, dependencies: VALIDATOR }));
  const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps'];
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  return manifest;
}

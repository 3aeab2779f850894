// Compares the drawing in ARCHITECTURE.md with the import rules, and the rules with the dependencies of packages.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from './docs/pages.ts';

interface Rule {
  readonly name: string;
  readonly from: { readonly path?: string };
  readonly to: { readonly pathNot?: readonly string[] };
}

const { forbidden } = createRequire(import.meta.url)(join(ROOT, '.dependency-cruiser.cjs')) as { forbidden: Rule[] };
const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
const drawing = /```\n([\s\S]*?)```/.exec(page)![1]!;

/** Which folders each folder may import from. */
function readRules(folder: RegExp): Map<string, string[]> {
  const named = (path = ''): string[] => folder.exec(path)?.slice(1, 2) ?? [];
  const rules = forbidden.filter(({ name }) => name.endsWith('-points-down'));
  return new Map(
    rules.flatMap(({ from, to }) =>
      named(from.path).map((name) => [name, to.pathNot!.flatMap(named).filter((other) => other !== name)] as const),
    ),
  );
}

const packages = readRules(/^\^packages\/([^/]+)\/$/);
const folders = readRules(/^\^packages\/core\/src\/([^/]+)\/$/);

const tasksFolders = readRules(/^\^packages\/tasks\/src\/([^/]+)\/$/);

/** The height at which each name is drawn: higher numbers are drawn above. */
function readHeights(groups: readonly string[], names: Iterable<string>): Map<string, number> {
  const heights = new Map<string, number>();
  for (const name of names) {
    const at = groups.findIndex((group) => new RegExp(`(^|\\s)${name}(\\s|$)`, 'm').test(group));
    if (at >= 0) heights.set(name, groups.length - at);
  }
  return heights;
}

const [above = '', inCore = ''] = drawing.split(/^1 /m);
const layers = [...above.split(/^\d /m).slice(1).map(firstLine), 'core'];
const inCoreGroups = inCore.split('▼').map((group) => group.replace(/^ *(\S+) .*$/gm, '$1'));

/** The column of tasks: its groups of folders, one line each. Remarks are further to the right. */
const inTasksGroups = above
  .split(/^2 /m)[1]!
  .split('\n')
  .slice(1)
  .map((line) => line.slice(30, 54))
  .join('\n')
  .split('▼');

/** The names in a layer. Remarks are further to the right. */
function firstLine(text: string): string {
  return text.split('\n', 1)[0]!.slice(0, 41);
}

function findUpward(rules: Map<string, string[]>, heights: Map<string, number>): string[] {
  return [...rules].flatMap(([from, allowed]) =>
    allowed.filter((to) => heights.get(to)! >= heights.get(from)!).map((to) => `${from} → ${to}`),
  );
}

test('every package is drawn, and depends only on packages drawn below it', () => {
  const heights = readHeights(layers, packages.keys());
  expect([...heights.keys()].toSorted()).toEqual(readdirSync(join(ROOT, 'packages')).toSorted());
  expect(findUpward(packages, heights)).toEqual(['console → server']);
});

test('every folder of the core is drawn, and depends only on folders drawn below it', () => {
  // The kit for tests uses all of them and is drawn nowhere.
  const drawn = new Map([...folders].filter(([name]) => name !== 'testing'));
  const heights = readHeights(inCoreGroups, drawn.keys());
  expect([...heights.keys()].toSorted()).toEqual([...drawn.keys()].toSorted());
  expect(findUpward(drawn, heights)).toEqual([]);
  expect(new Set(heights.values()).size, 'groups with an arrow between them').toBe(inCoreGroups.length);
});

test('every folder of tasks is drawn, and depends only on folders drawn below it', () => {
  const heights = readHeights(inTasksGroups, tasksFolders.keys());
  const exist = readdirSync(join(ROOT, 'packages/tasks/src'), { withFileTypes: true }).filter((one) =>
    one.isDirectory(),
  );
  const entries = ['internal', 'store', 'testing'];
  expect([...heights.keys(), ...entries].toSorted()).toEqual(exist.map(({ name }) => name).toSorted());
  expect(findUpward(tasksFolders, heights)).toEqual([]);
});

test('packages may import what their manifests list', () => {
  for (const [name, allowed] of packages) {
    const manifest = readFileSync(join(ROOT, 'packages', name, 'package.json'), 'utf8');
    const { dependencies = {} } = JSON.parse(manifest) as { dependencies?: Record<string, string> };
    const own = Object.keys(dependencies).flatMap((other) => /^@whoa\/(.*)/.exec(other)?.[1] ?? []);
    expect(own.toSorted(), name).toEqual(allowed.toSorted());
  }
});

test('the files that the page names exist', () => {
  const rows = Array.from(page.matchAll(/^\| (.+) \|$/gm), ([, row]) => row!.split(' | '));
  const named = rows.flatMap((cells) => {
    const folder = cells.length === 2 ? 'core' : cells[0]!.replaceAll('`', '');
    const files = cells.at(-1)!.matchAll(/`([\w./-]+(?:\.tsx?|\/))`(?: of (\w+))?/g);
    return Array.from(files, ([, file, other]) => `packages/${other ?? folder}/src/${file}`);
  });
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});

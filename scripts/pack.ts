// npm run pack -- FOLDER [PACKAGE…]   lets a project install packages of this clone: the named ones, or all. Build first.
import { mkdirSync } from 'node:fs';
import { addLocalPackages, fromCaller, OUR_NAMES } from './local-packages.ts';

const [given, ...names] = process.argv.slice(2);
if (given === undefined || names.some((name) => !OUR_NAMES.includes(name))) {
  console.error(`pack: npm run pack -- FOLDER [PACKAGE…], with packages of ${OUR_NAMES.join(', ')}`);
  process.exit(2);
}
const folder = fromCaller(given);
mkdirSync(folder, { recursive: true });
addLocalPackages(folder, names);
console.log(`They are in ${folder}/whoa and in its package.json. Next, in ${folder}: npm install`);

#!/usr/bin/env node
// Keep this outside `dist`: npm links the command at install time, which in a clone is before the first build.
// Keep it readable for every Node since 14.8: it prints the error for a Node that is too old.
import { existsSync, readFileSync } from 'node:fs';

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const needed = engines.node.replace('>=', '');
const built = new URL('../dist/bin.js', import.meta.url);

if (isOlder(process.versions.node, needed)) {
  console.error(
    `whoa: Node ${process.versions.node} is too old; install Node ${needed} or newer from https://nodejs.org`,
  );
  console.error('      (in a clone on Linux x64, scripts/with-node whoa … installs one)');
  process.exitCode = 2;
} else if (existsSync(built)) {
  await import(built.href);
} else {
  console.error('whoa: this clone is not built yet; run npm run build');
  process.exitCode = 2;
}

function isOlder(version, than) {
  const [major, minor] = version.split('.').map(Number);
  const [neededMajor, neededMinor] = than.split('.').map(Number);
  return major < neededMajor || (major === neededMajor && minor < neededMinor);
}

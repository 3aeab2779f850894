#!/usr/bin/env node
// Stands outside `dist`, because npm links a command when it installs, and in a clone that is before the first build.
import { existsSync } from 'node:fs';

const built = new URL('../dist/bin.js', import.meta.url);
if (existsSync(built)) await import(built.href);
else {
  console.error('whoa: this clone is not built yet; run npm run build');
  process.exitCode = 2;
}

// Runs as a separate process: swaps files and folders under a root for links that point outside, as fast as it can.
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';

const [root = '', outside = ''] = process.argv.slice(2);
process.chdir(root);
let running = true;
process.on('message', () => {
  running = false;
});
process.on('disconnect', () => process.exit());

/** Renames one over the other, so that a file exists at every moment. */
function swapFile(): void {
  symlinkSync(`${outside}/secret.txt`, 'next');
  renameSync('next', 'file.txt');
  writeFileSync('next', 'inside\n');
  renameSync('next', 'file.txt');
}

/** A folder that is now itself, now a link out, now a link in. */
function swapFolder(): void {
  renameSync('folder', 'folder-aside');
  symlinkSync(outside, 'folder');
  symlinkSync('folder-aside', 'next');
  renameSync('next', 'folder');
  symlinkSync(outside, 'next');
  renameSync('next', 'folder');
  rmSync('folder');
  renameSync('folder-aside', 'folder');
}

/** The tools write here too and may create a file that was just moved away: start again from a known state. */
function putInOrder(): void {
  try {
    for (const name of ['next', 'folder', 'folder-aside']) rmSync(name, { recursive: true, force: true });
    mkdirSync('folder', { recursive: true });
    writeFileSync('folder/secret.txt', 'inside\n');
  } catch {
    // The tools were faster; the next round tries again.
  }
}

let swaps = 0;
function swapAll(): void {
  try {
    swapFile();
    swapFolder();
    swaps += 8;
  } catch {
    putInOrder();
  }
}

process.send?.('ready');
function round(): void {
  for (let i = 0; i < 50 && running; i++) swapAll();
  if (running) setImmediate(round);
  else process.send?.({ swaps }, () => process.disconnect());
}
round();

// One side of the fan-out of `token.ts`, in a separate process, so that we do not pay for what AbortSignal.any leaves
// behind for the garbage collector.
import { CancellationToken } from '@whoa/core';
import { cpuMs } from '../measure/cpu.ts';

const SIZE = 100_000;

let heard = 0;
const listen = (): void => {
  heard++;
};

function ours(): { built: number; cancelled: number } {
  const start = cpuMs();
  const root = new CancellationToken();
  const children = Array.from({ length: SIZE }, () => {
    const child = root.child();
    child.onCancel(listen);
    return child;
  });
  const built = cpuMs();
  root.cancel({}, { mode: 'kill' });
  const end = cpuMs();
  for (const child of children) child[Symbol.dispose]();
  return { built: built - start, cancelled: end - built };
}

function bare(): { built: number; cancelled: number } {
  const start = cpuMs();
  const controller = new AbortController();
  const signals = Array.from({ length: SIZE }, () => {
    const signal = AbortSignal.any([controller.signal]);
    signal.addEventListener('abort', listen);
    return signal;
  });
  const built = cpuMs();
  controller.abort();
  const end = cpuMs();
  if (signals.length !== SIZE) throw new Error('lost signals');
  return { built: built - start, cancelled: end - built };
}

const measure = process.argv[2] === 'ours' ? ours : bare;
process.on('message', () => {
  heard = 0;
  global.gc?.();
  const figures = measure();
  if (heard !== SIZE) throw new Error(`heard ${heard} of ${SIZE}`);
  process.send!(figures);
});

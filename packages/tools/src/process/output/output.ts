import type { ChildProcess, StdioOptions } from 'node:child_process';
import { closeSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import { waitAtMost } from '@whoa/core/internal';
import type { Pipe } from '../fifo.ts';

/** The output of a command, standard output and error together. Disposing it stops reading. */
export interface Output extends Disposable {
  /** Waits up to `ms` for the end, because an escaped process may keep it open. */
  waitForEnd(ms: number): Promise<void>;
  /** Call it when the command has ended: reads the remaining output, for at most `ms`. */
  finish(ms: number): Promise<void>;
}

/** An output that still has to be connected to its command. */
export interface OutputTap extends Output {
  readonly stdio: StdioOptions;
  /** Call it once the command has started. */
  attach(child: ChildProcess): void;
  /** Pauses reading. No output is lost. */
  pause(): void;
  resume(): void;
}

type OnChunk = (chunk: Uint8Array) => void;

/** The size of a read, and of a pipe in the kernel. */
const READ_BYTES = 1 << 16;

/** Enough reads to empty the largest possible pipe. More output can only come from an escaped process. */
const MAX_LAST_READS = 16;

/** Reads a pipe into one reused buffer. A slow consumer slows the command down. */
export function tapPipe(pipe: Pipe, onChunk: OnChunk): OutputTap {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  const socket = new Socket({
    fd: pipe.read,
    readable: true,
    writable: false,
    onread: {
      buffer,
      callback(length) {
        onChunk(buffer.subarray(0, length));
        return true;
      },
    },
  });
  const ended = waitForEvent(socket, ['end', 'error', 'close']);
  socket.resume();
  let isOurs = true;
  const letGo = (): void => {
    if (isOurs) closeSync(pipe.write);
    isOurs = false;
  };
  return {
    stdio: ['ignore', pipe.write, pipe.write],
    // Close our copy of the writing end: the output cannot end while it is open.
    attach: letGo,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    waitForEnd: (ms) => waitAtMost(ended, ms),
    finish() {
      // Read synchronously: a stream ends later than its process. A destroyed socket no longer has a pipe.
      for (let reads = 0; reads < MAX_LAST_READS && !socket.destroyed; reads++) {
        const length = readWhatIsThere(pipe.read, buffer);
        if (length === 0) break;
        onChunk(buffer.subarray(0, length));
      }
      return Promise.resolve();
    },
    [Symbol.dispose]() {
      letGo();
      socket.destroy();
    },
  };
}

/** Returns 0 if there is no data, whether or not the other end is still open. */
function readWhatIsThere(descriptor: number, buffer: Buffer): number {
  try {
    return readSync(descriptor, buffer);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0;
    throw error;
  }
}

/** For systems without named pipes: the order of standard output and error is not kept. */
export function tapStreams(onChunk: OnChunk): OutputTap {
  let ended: Promise<unknown> = Promise.resolve();
  let child: ChildProcess | undefined;
  return {
    stdio: ['ignore', 'pipe', 'pipe'],
    attach(started) {
      child = started;
      const streams = [started.stdout!, started.stderr!];
      for (const stream of streams) stream.on('data', onChunk);
      ended = Promise.all(streams.map((stream) => waitForEvent(stream, ['end', 'error', 'close'])));
    },
    pause() {},
    resume() {},
    waitForEnd: (ms) => waitAtMost(ended, ms),
    finish: (ms) => waitAtMost(ended, ms),
    [Symbol.dispose]() {
      child?.stdout?.destroy();
      child?.stderr?.destroy();
    },
  };
}

function waitForEvent(emitter: NodeJS.EventEmitter, names: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    for (const name of names) emitter.once(name, () => resolve());
  });
}

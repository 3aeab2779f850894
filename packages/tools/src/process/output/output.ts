import type { ChildProcess, StdioOptions } from 'node:child_process';
import { closeSync, readSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Pipe } from '../fifo.ts';

/** Everything a command prints, standard output and error together. Disposed, it hears no more. */
export interface Output extends Disposable {
  /** Waits for the end of it, but not for ever: somebody who got away may hold it open. Says whether it ended. */
  waitForEnd(ms: number): Promise<boolean>;
  /** To be called when the command has ended: reads what it printed last, in `ms` at most. */
  finish(ms: number): Promise<void>;
}

/** An output that still has to be connected to its command. */
export interface OutputTap extends Output {
  readonly stdio: StdioOptions;
  /** To be called once the command was started. */
  attach(child: ChildProcess): void;
  /** Hears nothing for a while. Nothing is lost. */
  pause(): void;
  resume(): void;
}

type OnChunk = (chunk: Uint8Array) => void;

/** What one read takes at most, and what the kernel keeps in a pipe. */
const READ_BYTES = 1 << 16;

/** As many reads as empty the largest pipe there can be; more can only come from somebody who got away. */
const MAX_LAST_READS = 16;

/** Reads a pipe as its command fills it, into one buffer that is used again and again. What is slow slows the command. */
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
    // The child has its own: as long as this one is open, the output cannot end.
    attach: letGo,
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    waitForEnd: (ms) => isInTime(ended, ms),
    finish() {
      // Read here and now: the end of a stream is told later than that of a process. A destroyed one has no pipe any more.
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

/** 0 when there is nothing more, whether or not somebody holds the other end. */
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
    waitForEnd: (ms) => isInTime(ended, ms),
    finish: async (ms) => void (await isInTime(ended, ms)),
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

async function isInTime(ended: Promise<unknown>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), ms);
  });
  const isEnded = await Promise.race([ended.then(() => true), tooLate]);
  clearTimeout(timer);
  return isEnded;
}

import { closeSync, openSync, readSync } from 'node:fs';

/** Only an environment can be longer. Then it is cut, and only the other tags count. */
const MAX_BYTES = 1 << 18;

let buffer = Buffer.allocUnsafe(1 << 14);

/**
 * Reads a small file in `/proc`; `undefined` if it cannot be read. The bytes are only valid until the next call: all calls
 * share one buffer, because a sweep reads hundreds of files within a millisecond or two.
 */
export function readProcFile(path: string): Buffer | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    let length = 0;
    for (;;) {
      const read = readSync(descriptor, buffer, length, buffer.length - length, null);
      length += read;
      if (read === 0 || length === MAX_BYTES) return buffer.subarray(0, length);
      // The kernel returns these files whole or in pages, so a short read is the last.
      if (length < buffer.length && read < PAGE) return buffer.subarray(0, length);
      if (length === buffer.length) buffer = Buffer.concat([buffer], buffer.length * 4);
    }
  } catch {
    // ESRCH: the process ended between open and read.
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}

const PAGE = 4096;

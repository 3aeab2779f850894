import { closeSync, openSync, readSync } from 'node:fs';

/** Only an environment can be longer. It is cut then, and the other tags have to do. */
const MAX_BYTES = 1 << 18;

let buffer = Buffer.allocUnsafe(1 << 14);

/**
 * The bytes of a small file in `/proc`, or `undefined` if it cannot be read. They are only good until the next read: one
 * buffer serves all, because a sweep reads hundreds of these within a millisecond or two.
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
      // These files come whole or in pages: a read that leaves room was the last.
      if (length < buffer.length && read < PAGE) return buffer.subarray(0, length);
      if (length === buffer.length) buffer = Buffer.concat([buffer], buffer.length * 4);
    }
  } catch {
    // ESRCH: the process went away between the opening and the reading.
    return undefined;
  } finally {
    closeSync(descriptor);
  }
}

const PAGE = 4096;

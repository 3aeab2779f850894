import { Writable } from 'node:stream';

/** Exclusive access to standard output. */
export interface TakenOutput {
  readonly output: Writable;
  readonly restore: () => void;
}

/**
 * Reserves standard output for the protocol: all other output goes to standard error until it is released. Otherwise
 * one `console.log` in a tool would break the connection.
 */
export function takeStandardOutput(): TakenOutput {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  // `write` is inherited unless other code replaced it before.
  const before = Object.getOwnPropertyDescriptor(stdout, 'write');
  const output = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      write(chunk, 'utf8', done);
    },
  });
  const onError = (error: Error): void => {
    output.destroy(error);
  };
  stdout.on('error', onError);
  stdout.write = stderr.write.bind(stderr) as typeof stdout.write;
  return {
    output,
    restore() {
      if (before === undefined) Reflect.deleteProperty(stdout, 'write');
      else Object.defineProperty(stdout, 'write', before);
      stdout.off('error', onError);
    },
  };
}

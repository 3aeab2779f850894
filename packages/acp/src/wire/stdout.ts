import { Writable } from 'node:stream';

/** Standard output, for one user alone. */
export interface TakenOutput {
  readonly output: Writable;
  readonly giveBack: () => void;
}

/**
 * Takes standard output for the protocol: what anybody else prints goes to standard error until it is given back. One
 * `console.log` in somebody's tool would otherwise end the conversation.
 */
export function takeStandardOutput(): TakenOutput {
  const { stdout, stderr } = process;
  const write = stdout.write.bind(stdout);
  // `write` is inherited unless somebody replaced it before us.
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
    giveBack() {
      if (before === undefined) Reflect.deleteProperty(stdout, 'write');
      else Object.defineProperty(stdout, 'write', before);
      stdout.off('error', onError);
    },
  };
}

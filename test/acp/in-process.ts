// An agent in this very process, on streams in memory.
import { PassThrough, Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';
import { type AcpConnection, type AcpOptions, serveAcp } from '@whoa/acp';
import { testAgent } from './agent.ts';
import { type RawMessage, watchMessages } from './editor.ts';

export interface InProcess {
  readonly stream: acp.Stream;
  readonly connection: AcpConnection;
  readonly input: PassThrough;
  readonly messages: readonly RawMessage[];
  readonly waitFor: (matches: (message: RawMessage) => boolean) => Promise<RawMessage>;
  /** The updates so far. */
  readonly updates: () => Record<string, unknown>[];
}

/** Serves the agent of the tests, changed as wanted. */
export function serveInProcess(more: Partial<AcpOptions> = {}): InProcess {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const connection = serveAcp(testAgent('none', more), { input, output });
  const watch = watchMessages(output);
  const { messages, waitFor } = watch;
  return {
    connection,
    input,
    messages,
    waitFor,
    stream: acp.ndJsonStream(Writable.toWeb(input), Readable.toWeb(watch.copy) as ReadableStream<Uint8Array>),
    updates: () => messages.flatMap(({ params }) => (params?.update === undefined ? [] : [params.update])),
  };
}

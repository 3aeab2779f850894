import type { ConnectionContext } from './session/connection-context.ts';
import { Sessions } from './session/sessions.ts';
import { type AppOptions, createV1App, methodsV1, type V1Method } from './v1/app.ts';
import type { connectByVersion } from './v2/app.ts';
import type { Wire } from './wire/wire.ts';

/** Reorders the methods. The order must not matter. */
export type Arrange = (methods: V1Method[]) => V1Method[];

export interface ConnectOptions {
  readonly around: Omit<ConnectionContext, 'client'>;
  readonly arrange: Arrange;
  /** For a client that may use another version than v1. */
  readonly connectByVersion: typeof connectByVersion | undefined;
}

/** Connects the protocol's library to the wire. Returns the sessions of the connection. */
export function connectProtocol(wire: Wire, { around, arrange, ...router }: ConnectOptions): Sessions {
  const { options } = around;
  const sessions = new Sessions(options.settings ?? []);
  const parts: AppOptions = { options, sessions, onClient: (client) => sessions.attach({ ...around, client }) };
  const v1 = createV1App(arrange(methodsV1(parts)));
  wire.open(sessions);
  if (router.connectByVersion === undefined) v1.connect(wire.stream);
  else router.connectByVersion(wire.stream, v1, parts);
  return sessions;
}

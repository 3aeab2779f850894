import type { ServerCommand } from './server-process.ts';

/** How to connect to a server. */
export type McpTransport =
  | ({ readonly type: 'stdio' } & ServerCommand)
  | {
      readonly type: 'http';
      readonly url: string;
      /** Sent with every request, for example `Authorization`. */
      readonly headers?: Readonly<Record<string, string>>;
    };

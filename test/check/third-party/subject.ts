import type { Protocol } from '@whoa/check';

/** Where a subject is installed and what it needs to know to start. */
export interface Location {
  /** The folder of its `node_modules`. */
  readonly installed: string;
  /** An empty home folder of its own. */
  readonly home: string;
  /** The base URL of the kit's model. It ends in `/v1`. */
  readonly provider: string;
}

/** An agent or a server of others, and how it is started without an account. */
export interface Subject {
  readonly name: string;
  readonly title: string;
  readonly protocol: Protocol;
  /** What is installed, in exact versions. The first one is what is checked. */
  readonly packages: Readonly<Record<string, string>>;
  /** Those packages whose install scripts must run. */
  readonly scripts?: readonly string[];
  /** How it is set up, and what its reader should know. */
  readonly about: string;
  /** Checks of what our own program around it does, whatever it does itself: they are not counted. */
  readonly upToTheProgram?: readonly string[];
  /** What a reader must know to judge its failures fairly. */
  readonly fairly?: string;
  /** The page that says how to set it up. */
  readonly page: string;
  /** A server of `servers/` that is copied beside its packages. */
  readonly program?: string;
  /** The command; `{port}` is replaced by a free port. */
  readonly command: (location: Location) => readonly string[];
  readonly env?: (location: Location) => Readonly<Record<string, string>>;
  /** Files in its home folder. */
  readonly files?: (location: Location) => Readonly<Record<string, string>>;
  /** The address of a server; `{port}` is replaced. */
  readonly url?: string;
}

/** The path of a command that a subject's package installed. */
export function bin({ installed }: Location, name: string): string {
  return `${installed}/node_modules/.bin/${name}`;
}

/** The path of its server. */
export function program({ installed }: Location): string {
  return `${installed}/server.mjs`;
}

import type { Protocol } from '@whoa/check';

/** The folder of a subject, and what it needs to start. */
export interface Location {
  /** The folder of its `node_modules`. */
  readonly installed: string;
  /** A separate, empty home folder. */
  readonly home: string;
  /** The base URL of the kit's model. It ends in `/v1`. */
  readonly provider: string;
}

/** A third-party agent or server, and how to start it without an account. */
export interface Subject {
  readonly name: string;
  readonly title: string;
  readonly protocol: Protocol;
  /** The installed packages, in exact versions. The first one is the one under test. */
  readonly packages: Readonly<Record<string, string>>;
  /** The packages whose install scripts must run. */
  readonly scripts?: readonly string[];
  /** A description of its setup for readers. */
  readonly about: string;
  /** Checks whose result depends on our own program around it: they are not counted. */
  readonly upToTheProgram?: readonly string[];
  /** Remarks that readers need to interpret its failures fairly. */
  readonly fairly?: string;
  /** The documentation page for its setup. */
  readonly page: string;
  /** A server of `servers/` that is copied next to its packages. */
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

import { settings } from '@whoa/core/internal';
/** What commands may access: `workspace` lets them write to one folder, `read-only` to none, `none` is no sandbox. */
export type SandboxKind = 'workspace' | 'read-only' | 'none';

/** A sandbox with options. */
export interface SandboxOptions {
  readonly kind: SandboxKind;
  /** The folder that commands work in; defaults to the working folder. It must not contain a home folder. */
  readonly workspace?: string | undefined;
  /** More folders that commands can read, such as a toolchain outside `/usr`. */
  readonly readable?: readonly string[] | undefined;
  /**
   * More folders that commands can write to, such as the settings of a program. One below your home folder is found at the same
   * path below the private home. A folder that holds keys gives them away. Also sockets of daemons that commands can use.
   */
  readonly writable?: readonly string[] | undefined;
  /** Folders inside the workspace that commands find empty and cannot write to. They must exist. */
  readonly hidden?: readonly string[] | undefined;
  /** The hosts that commands can reach, through a proxy. Defaults to no network. */
  readonly network?: NetworkOptions | undefined;
  readonly limits?: SandboxLimits | undefined;
}

export interface NetworkOptions {
  /** Hosts, as `example.com`, `*.example.com` or `example.com:8443`; without a port, 80 and 443. */
  readonly allow: readonly string[];
  /** Called for every request, including refused ones. */
  readonly onRequest?: ((request: NetworkRequest) => void) | undefined;
}

/** A request through the proxy. */
export interface NetworkRequest {
  readonly at: number;
  readonly host: string;
  readonly port: number;
  readonly isAllowed: boolean;
  /** Why it was refused. */
  readonly reason?: string;
}

export interface SandboxLimits {
  /** The data of one process (`RLIMIT_DATA`); defaults to 4 GiB. */
  readonly memoryBytes?: number | undefined;
  /** Processes of one command (`RLIMIT_NPROC`); defaults to 1,024. Linux does not apply it to root. */
  readonly processes?: number | undefined;
  /** The size of the private `/tmp`, and of the private home folder; defaults to 1 GiB each. */
  readonly tempBytes?: number | undefined;
}

/** Options without gaps. */
export type Whole<Options> = { readonly [Name in keyof Options]-?: Exclude<Options[Name], undefined> };

const GIB = 2 ** 30;
const { count, listOf, nonEmptyText, required } = settings;
const kindRule = settings.oneOf('workspace', 'read-only', 'none');
const RULES: settings.Rules<SandboxOptions> = {
  kind: required(kindRule),
  workspace: nonEmptyText,
  readable: listOf(nonEmptyText),
  writable: listOf(nonEmptyText),
  hidden: listOf(nonEmptyText),
  network: settings.group<NetworkOptions>({ allow: required(listOf(nonEmptyText)), onRequest: settings.callback }),
  limits: settings.group<SandboxLimits>({ memoryBytes: count(), processes: count(), tempBytes: count() }),
};

/** Validates the options and fills in the defaults. */
export function readSandboxOptions(sandbox: SandboxKind | SandboxOptions): Whole<
  Omit<SandboxOptions, 'network' | 'limits'>
> & {
  readonly network: NetworkOptions | undefined;
  readonly limits: Whole<SandboxLimits>;
} {
  const options =
    typeof sandbox === 'object' && sandbox !== null
      ? settings.readSettings<SandboxOptions>(sandbox, RULES, { within: 'sandbox' })
      : { kind: kindRule(sandbox, 'sandbox') as SandboxKind };
  const { kind, workspace = process.cwd(), readable = [], writable = [], hidden = [], network, limits = {} } = options;
  const { memoryBytes = 4 * GIB, processes = 1_024, tempBytes = GIB } = limits;
  return { kind, workspace, readable, writable, hidden, network, limits: { memoryBytes, processes, tempBytes } };
}

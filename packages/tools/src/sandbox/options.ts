/** What commands may access: `workspace` lets them write to one folder, `read-only` to none, `none` is no sandbox. */
export type SandboxKind = 'workspace' | 'read-only' | 'none';

/** Every kind of sandbox. */
const SANDBOX_KINDS: readonly SandboxKind[] = ['workspace', 'read-only', 'none'];

/** A sandbox with options. */
export interface SandboxOptions {
  readonly kind: SandboxKind;
  /** The folder that commands work in; defaults to the working folder. It must not contain a home folder. */
  readonly workspace?: string;
  /** More folders that commands can read, such as a toolchain outside `/usr`. */
  readonly readable?: readonly string[];
  /**
   * More folders that commands can write to, such as the settings of a program. One below your home folder is found at the same
   * path below the private home. A folder that holds keys gives them away.
   */
  readonly writable?: readonly string[];
  /** Folders inside the workspace that commands find empty and cannot write to. They must exist. */
  readonly hidden?: readonly string[];
  /** The hosts that commands can reach, through a proxy. Defaults to no network. */
  readonly network?: NetworkOptions;
  readonly limits?: SandboxLimits;
}

export interface NetworkOptions {
  /** Hosts, as `example.com`, `*.example.com` or `example.com:8443`; without a port, 80 and 443. */
  readonly allow: readonly string[];
  /** Called for every request, including refused ones. */
  readonly onRequest?: (request: NetworkRequest) => void;
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
  readonly memoryBytes?: number;
  /** Processes of one command (`RLIMIT_NPROC`); defaults to 1,024. Linux does not apply it to root. */
  readonly processes?: number;
  /** The size of the private `/tmp`, and of the private home folder; defaults to 1 GiB each. */
  readonly tempBytes?: number;
}

const GIB = 2 ** 30;

/** Validates the options and fills in the defaults. */
export function readSandboxOptions(sandbox: SandboxKind | SandboxOptions): Required<Omit<SandboxOptions, 'network'>> & {
  readonly network: NetworkOptions | undefined;
  readonly limits: Required<SandboxLimits>;
} {
  const options = typeof sandbox === 'string' ? { kind: sandbox } : sandbox;
  const { kind, workspace = process.cwd(), readable = [], writable = [], hidden = [], network, limits = {} } = options;
  if (!SANDBOX_KINDS.includes(kind)) {
    throw new TypeError(`sandbox: expected ${SANDBOX_KINDS.map((one) => `'${one}'`).join(', ')}, got ${String(kind)}`);
  }
  const { memoryBytes = 4 * GIB, processes = 1_024, tempBytes = GIB } = limits;
  for (const [name, value] of Object.entries({ memoryBytes, processes, tempBytes })) {
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new RangeError(`sandbox.limits.${name}: expected a whole number above 0, got ${value}`);
    }
  }
  return { kind, workspace, readable, writable, hidden, network, limits: { memoryBytes, processes, tempBytes } };
}

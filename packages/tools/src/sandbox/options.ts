/** What commands may reach: `workspace` lets them write to one folder, `read-only` to none, `none` is no sandbox. */
export type SandboxKind = 'workspace' | 'read-only' | 'none';

/** Every kind of sandbox. */
export const SANDBOX_KINDS: readonly SandboxKind[] = ['workspace', 'read-only', 'none'];

/** A sandbox in more than one word. */
export interface SandboxOptions {
  readonly kind: SandboxKind;
  /** The folder commands work in; defaults to the host's. Neither a home folder nor one above it. */
  readonly workspace?: string;
  /** Further folders that can be read, such as a toolchain outside of `/usr`. */
  readonly readable?: readonly string[];
  /** What can be reached of the network, through a proxy; nothing unless given. */
  readonly network?: NetworkOptions;
  readonly limits?: SandboxLimits;
}

export interface NetworkOptions {
  /** Hosts, as `example.com`, `*.example.com` or `example.com:8443`; without a port, 80 and 443. */
  readonly allow: readonly string[];
  /** Told of every request, also of those that are refused. */
  readonly onRequest?: (request: NetworkRequest) => void;
}

/** One request to the outside, as the proxy's log has it. */
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
  /** Processes in one command (`RLIMIT_NPROC`); defaults to 1,024. Linux does not hold root to it. */
  readonly processes?: number;
  /** The private `/tmp`, and as much again for the home folder; defaults to 1 GiB. */
  readonly tempBytes?: number;
}

const GIB = 2 ** 30;

/** Checks what was asked for, and fills in what was not. */
export function readSandboxOptions(sandbox: SandboxKind | SandboxOptions): Required<Omit<SandboxOptions, 'network'>> & {
  readonly network: NetworkOptions | undefined;
  readonly limits: Required<SandboxLimits>;
} {
  const options = typeof sandbox === 'string' ? { kind: sandbox } : sandbox;
  const { kind, workspace = process.cwd(), readable = [], network, limits = {} } = options;
  if (!SANDBOX_KINDS.includes(kind)) {
    throw new TypeError(`sandbox: expected ${SANDBOX_KINDS.map((one) => `'${one}'`).join(', ')}, got ${String(kind)}`);
  }
  const { memoryBytes = 4 * GIB, processes = 1_024, tempBytes = GIB } = limits;
  for (const [name, value] of Object.entries({ memoryBytes, processes, tempBytes })) {
    if (!(Number.isSafeInteger(value) && value > 0)) {
      throw new RangeError(`sandbox.limits.${name}: expected a whole number above 0, got ${value}`);
    }
  }
  return { kind, workspace, readable, network, limits: { memoryBytes, processes, tempBytes } };
}

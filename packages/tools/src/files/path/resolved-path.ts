import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Thrown when a path cannot be used. The message says why and what to do. */
export class PathError extends Error {
  override readonly name: string = 'PathError';
  readonly code: 'OUTSIDE_ROOT' | 'NOT_FOUND' | 'NOT_A_FOLDER' | 'NOT_A_FILE' | 'INVALID_PATH';

  constructor(code: PathError['code'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** A resolved path under a root. Its paths stay valid until it is disposed. */
export interface ResolvedPath extends AsyncDisposable {
  /** The real path relative to the root; `.` is the root itself. */
  readonly displayPath: string;
  readonly kind: 'file' | 'folder' | 'other' | 'missing';
  /** The parent folder and the name in it. The root itself has neither. */
  readonly folder: string | undefined;
  readonly name: string | undefined;
  /** The path to open. */
  readonly target: string;
  /** Identifies the file: all paths to one file have the same key. */
  readonly key: string;
  /** Removes the folders that were created for this path, if they are still empty. */
  removeCreated(): Promise<void>;
}

/** Opens a file for reading. Never blocks, unlike opening a named pipe. */
export function openToRead(resolved: ResolvedPath): Promise<FileHandle> {
  return open(resolved.target, constants.O_RDONLY | constants.O_NONBLOCK);
}

export interface WalkOptions {
  /** Create missing folders. */
  readonly create?: boolean | undefined;
}

/** The number of symbolic links that the kernel would follow. */
export const MAX_LINKS = 40;
/** Deeper paths are rejected: every step holds a descriptor. */
export const MAX_STEPS = 256;

export function outside(path: string): PathError {
  return new PathError('OUTSIDE_ROOT', `'${path}' leads outside the root; use a path inside it`);
}

export function notFound(path: string): PathError {
  return new PathError('NOT_FOUND', `'${path}' does not exist; list its folder to see what does`);
}

export function notAFolder(path: string): PathError {
  return new PathError('NOT_A_FOLDER', `'${path}' is not a folder`);
}

export function notAFile(path: string, kind: ResolvedPath['kind']): PathError {
  if (kind === 'missing') return notFound(path);
  const what = kind === 'folder' ? 'a folder; use ls to list it' : 'a pipe, socket or device; only files can be used';
  return new PathError('NOT_A_FILE', `'${path}' is ${what}`);
}

export function tooManyLinks(path: string): PathError {
  return new PathError('INVALID_PATH', `'${path}' goes through more than ${MAX_LINKS} symbolic links`);
}

export function tooDeep(path: string): PathError {
  return new PathError('INVALID_PATH', `'${path}' is more than ${MAX_STEPS} folders deep`);
}

/** The code of a system error; `undefined` for other errors. */
export function findErrorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

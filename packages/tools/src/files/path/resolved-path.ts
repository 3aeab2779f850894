import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** Thrown when a path cannot be used. The text says why and what to do. */
export class PathError extends Error {
  override readonly name: string = 'PathError';
  readonly code: 'OUTSIDE_ROOT' | 'NOT_FOUND' | 'NOT_A_FOLDER' | 'NOT_A_FILE' | 'INVALID_PATH';

  constructor(code: PathError['code'], message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** What a path under a root turned out to be. Its paths stay valid until it is disposed. */
export interface ResolvedPath extends AsyncDisposable {
  /** From the root, with every link resolved; `.` is the root itself. */
  readonly shown: string;
  readonly kind: 'file' | 'folder' | 'other' | 'missing';
  /** The folder it is in and its name there. The root itself has neither. */
  readonly folder: string | undefined;
  readonly name: string | undefined;
  /** The thing itself. */
  readonly target: string;
  /** Names the file however it was reached: two paths to one file have the same key. */
  readonly key: string;
  /** Takes away the folders that were created on the way here, if they are still empty. */
  removeCreated(): Promise<void>;
}

/** Opens the file at a place. It never waits for a writer, as opening a pipe would. */
export function openToRead(resolved: ResolvedPath): Promise<FileHandle> {
  return open(resolved.target, constants.O_RDONLY | constants.O_NONBLOCK);
}

export interface WalkOptions {
  /** Create the folders that are missing on the way. */
  readonly create?: boolean;
}

/** As many symbolic links as the kernel itself would follow. */
export const MAX_LINKS = 40;
/** Deeper paths are refused: every step holds a descriptor. */
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

/** The code of a failed system call, if that is what an error is. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

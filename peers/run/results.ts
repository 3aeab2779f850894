import type { Observation } from '../core/repeat.ts';
import type { LibraryKey } from './libraries.ts';

/** The file that `npm run peers -- --write` saves, from which the page is made. */
export interface Results {
  /** When each library was measured. */
  readonly dates: Readonly<Record<LibraryKey, string>>;
  readonly node: string;
  /** How it was made, if not in one run on a quiet machine. */
  readonly remark?: string;
  /** The version of each package that was installed. */
  readonly versions: Readonly<Record<string, string>>;
  /** By scenario, then by library. */
  readonly observations: Readonly<Record<string, Readonly<Partial<Record<LibraryKey, Observation>>>>>;
}

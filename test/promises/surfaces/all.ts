import { commandSurface } from './command.ts';
import { editorSurface } from './editor.ts';
import { runSurface } from './run.ts';
import type { Surface } from './surface.ts';
import { sharedStores, taskSurface } from './task.ts';

/** Every surface, with the stores named or with all. Call it at the top of a test file: servers are started once and stopped after its last test. */
export function everySurface(stores?: readonly string[]): Surface[] {
  return [runSurface, ...sharedStores(stores).map(taskSurface), editorSurface, commandSurface];
}

import type { Change } from '../plant.ts';
import type { Ground } from './simulate-seed.ts';

/** A bug that the simulation must find: a change to the sources of the tasks package. */
export interface PlantedBug {
  readonly name: string;
  /** Where it is looked for. */
  readonly ground: Ground;
  readonly changes: readonly Change[];
}

type Plant = (name: string, file: string, find: string, replace: string) => PlantedBug;

/** Returns how to write a bug with one change. */
export const plantOn =
  (ground: Ground): Plant =>
  (name, file, find, replace) => ({ name, ground, changes: [{ file, find, replace }] });

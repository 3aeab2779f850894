import type { Change } from '../plant.ts';
import type { BusFaults } from './network.ts';
import type { Profile } from './simulate-seed.ts';

/** A bug that the simulation must find: a change to the sources of the tasks package. */
export interface PlantedBug {
  readonly name: string;
  /** The profile that must find it. */
  readonly profile: Profile;
  /** The bus that must find it. */
  readonly bus?: BusFaults;
  readonly changes: readonly Change[];
}

type Plant = (name: string, file: string, find: string, replace: string) => PlantedBug;

/** Returns a function that creates a bug with one change. */
export const plantOn =
  (profile: Profile): Plant =>
  (name, file, find, replace) => ({ name, profile, changes: [{ file, find, replace }] });

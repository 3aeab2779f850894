import type { PlantedBug } from './planted-bug.ts';

/** Bugs that show only if hints are lost. */
export const plantedInBus: readonly PlantedBug[] = [
  {
    name: 'a worker takes only when it is notified',
    profile: 'delivery',
    bus: 'drops',
    changes: [
      {
        file: 'delivery/take-loop.ts',
        find: 'const poll = (): void => {\n      this.wake();',
        replace: 'const poll = (): void => {',
      },
    ],
  },
];

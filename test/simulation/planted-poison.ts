import { type PlantedBug, plantOn } from './planted-bug.ts';

const one = plantOn('poison');

/** What could be wrong with who is charged for a crash. */
export const plantedInPoison: readonly PlantedBug[] = [
  one(
    'attempts are counted twice',
    'ledger/rules/transitions.ts',
    'plus: { epoch: 1, attempts: 1 },',
    'plus: { epoch: 1, attempts: 2 },',
  ),
  one(
    'the neighbours of a crash are charged',
    'ledger/operations/session.ts',
    "const isCharged = task.status === 'running' && holdsAsSuspect(session, task);",
    "const isCharged = task.status === 'running' && session.id !== '';",
  ),
  one(
    'a session takes several suspects',
    'ledger/operations/take.ts',
    'if (isSuspect(task)) mayTakeSuspect = false;',
    '',
  ),
  one(
    'a charge survives a late release',
    'ledger/operations/work.ts',
    'charges: Math.max(0, charges - Number(isCharged)),',
    'charges,',
  ),
];

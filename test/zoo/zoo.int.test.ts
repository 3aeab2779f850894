import { type Containment, createContainment } from '@whoa/tools';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cell, findClasses, findTechniques, formatZoo, playCell } from './table.ts';

const ROUNDS = 2;
const cells: Cell[] = [];
let containments: Containment[] = [];

beforeAll(async () => {
  containments = (await findTechniques()).map(({ technique }) => createContainment({ technique }));
});
afterAll(async () => {
  console.log(formatZoo(cells));
  await Promise.all(containments.map((containment) => containment[Symbol.asyncDispose]()));
});

const kept = findClasses().filter(({ shedsEveryTag }) => !shedsEveryTag);
const [evader] = findClasses().filter(({ shedsEveryTag }) => shedsEveryTag);

test.each(kept)('nothing survives and no zombie stays of: $name', async (zooClass) => {
  for (const containment of containments) {
    const cell = await playCell(zooClass, containment, ROUNDS);
    cells.push(cell);
    const clean = { survivors: 0, zombies: 0 };
    expect(cell.rounds, containment.technique).toMatchObject(cell.rounds.map(() => clean));
    expect(cell.rounds.map(({ verified }) => verified)).not.toContain('no');
  }
});

test('who sheds every tag on purpose is ended by every containment of the kernel', async () => {
  for (const containment of containments) {
    const cell = await playCell(evader!, containment, ROUNDS);
    cells.push(cell);
    if (cell.isPromised) expect(cell.rounds.map(({ survivors }) => survivors)).toEqual(cell.rounds.map(() => 0));
  }
});

import { type Containment, createContainment } from '@whoa/tools';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isNight } from '../night.ts';
import { ENVIRONMENTS, runIn } from './environments.ts';
import { ESCAPES, type EscapeKind } from './escapes.ts';
import { type Cell, findClasses, findTechniques, findUnreported, formatEscapes, runCell } from './table.ts';

const ROUNDS = 1;
const cells: Cell[] = [];
let containments: Containment[] = [];

beforeAll(async () => {
  containments = (await findTechniques()).map(({ technique }) => createContainment({ technique }));
});
afterAll(async () => {
  console.log(formatEscapes(cells));
  await Promise.all(containments.map((containment) => containment[Symbol.asyncDispose]()));
});

const isLimit = ({ shedsEveryTag, leavesCgroup }: EscapeKind): boolean => (shedsEveryTag ?? leavesCgroup) === true;
const kept = findClasses().filter((escapeKind) => !isLimit(escapeKind));
const evaders = findClasses().filter(isLimit);

test.each(kept)('no process survives and no zombie stays: $name', async (escapeKind) => {
  for (const containment of containments) {
    const cell = await runCell(escapeKind, containment, ROUNDS);
    cells.push(cell);
    const clean = { survivors: 0, zombies: 0 };
    expect(cell.rounds, cell.technique).toMatchObject(cell.rounds.map(() => clean));
    expect(cell.rounds.map(({ verified }) => verified)).toEqual(cell.rounds.map(() => cell.technique));
  }
});

test.each(evaders)('what one technique cannot hold, the others do: $name', async (escapeKind) => {
  for (const containment of containments) {
    const cell = await runCell(escapeKind, containment, ROUNDS);
    cells.push(cell);
    const survivors = cell.rounds.map((round) => round.survivors);
    expect(survivors, cell.technique).toEqual(
      cell.rounds.map(() => (cell.isPromised ? 0 : (expect.any(Number) as number))),
    );
  }
});

test.runIf(isNight)('no process is left unreported for other users or inside another PID namespace', async () => {
  const completed = await Promise.all(ENVIRONMENTS.slice(1).map((environment) => runIn(environment, ROUNDS)));
  for (const [index, there] of completed.entries()) {
    const { name } = ENVIRONMENTS[index + 1]!;
    console.log(`${name}\n${formatEscapes(there)}`);
    expect(findUnreported(there), name).toEqual([]);
    expect(
      there.flatMap(({ rounds }) => rounds.map(({ verified }) => verified)),
      name,
    ).not.toContain('no');
    const expected = ESCAPES.filter(({ needsRoot = false }) => name.startsWith('root') || !needsRoot).length;
    expect(new Set(there.map(({ escapeKind }) => escapeKind.name)).size, name).toBe(expected);
  }
});

test('at least 42 escapes are tested', () => {
  expect(new Set(ESCAPES.map(({ name }) => name)).size).toBeGreaterThanOrEqual(42);
});

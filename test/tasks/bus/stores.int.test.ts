// What a store sends over its bus, when, and to whom.
import { DatabaseSync } from 'node:sqlite';
import { createAgent, sleep } from '@whoa/core';
import { reply } from '@whoa/core/model';
import { createRunner, createTaskStore, followTask, type TaskStore } from '@whoa/tasks';
import type { Bus } from '@whoa/tasks/store';
import { expect, test } from 'vitest';
import { createProcessBus } from '../../../packages/tasks/src/bus/process-bus.ts';
import { borrowPostgres } from '../../servers/borrow.ts';
import { query } from '../../servers/query.ts';
import { temporaryFolder } from '../child.ts';
import { create, running } from '../held-task.ts';
import { createLossyBus } from './lossy-bus.ts';

interface Place extends AsyncDisposable {
  open(bus: Bus): TaskStore;
  run(sql: string): unknown;
  readonly schema: string;
  readonly past: string;
}

const places: Record<string, () => Promise<Place>> = {
  SQLite() {
    const folder = temporaryFolder();
    return Promise.resolve({
      open: (bus) => createTaskStore({ backend: 'sqlite', file: folder.file, bus }),
      run(sql) {
        const database = new DatabaseSync(folder.file);
        const rows = database.prepare(sql).all();
        database.close();
        return rows;
      },
      schema: 'main',
      past: '0',
      [Symbol.asyncDispose]: () => Promise.resolve(folder[Symbol.dispose]()),
    });
  },
  async Postgres() {
    const server = await borrowPostgres();
    return {
      open: (bus) => createTaskStore({ backend: 'postgres', url: server.url, bus }),
      run: (sql) => query(server.url, sql),
      schema: 'whoa',
      past: 'now()',
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  },
};

/** A bus that sends nothing. */
function intercept(onSend: () => void): Bus {
  return { ...createProcessBus(), send: onSend };
}

test.for(Object.keys(places))('%s: a hint is sent after its change can be read', async (name) => {
  await using place = await places[name]!();
  const seen: unknown[] = [];
  await using watching = place.open(createProcessBus());
  const look = (): unknown => place.run(`SELECT status FROM ${place.schema}.tasks`);
  const note = (): void => void seen.push(look());
  await using changing = place.open(intercept(note));
  await watching.watch({}, () => {});
  await changing.watch({}, note);
  await create(changing);
  await expect.poll(() => Promise.all(seen)).toMatchObject([[{ status: 'init' }], [{ status: 'init' }]]);
});

test.for(Object.keys(places))('%s: nothing is sent where no one listens, or to an expired inbox', async (name) => {
  await using place = await places[name]!();
  let sent = 0;
  await using watching = place.open(createProcessBus());
  await using changing = place.open(intercept(() => sent++));
  const { ref } = await running(changing);
  const steer = () => changing.send(ref, { type: 'steer', message: 'x' });
  await steer();
  const watch = await watching.watch({ id: ref.id }, () => {});
  await place.run(`UPDATE ${place.schema}.inboxes SET until = ${place.past}`);
  await steer();
  await watch[Symbol.asyncDispose]();
  await steer();
  await watching.watch({ tenant: ref.tenant }, () => {});
  await steer();
  await expect.poll(() => sent).toBe(1);
  await changing[Symbol.asyncDispose]();
  expect(sent).toBe(1);
});

test.for(
  Object.keys(places).flatMap((name) =>
    (['drops', 'gaps', 'disorders'] as const).map((faults) => [name, faults] as const),
  ),
)('%s: over a bus with faults (%s), a reader sees each word once, in order', async ([name, faults]) => {
  await using place = await places[name]!();
  const lossy = () => createLossyBus(createProcessBus(), faults);
  await using working = place.open(lossy());
  await using reading = place.open(lossy());
  const words = Array.from({ length: 60 }, (_, i) => `word ${i} `);
  const talker = createAgent({
    name: 'talker',
    planner: {
      async next(_history, { emit, token }) {
        for (const text of words) {
          emit({ type: 'text', text });
          await sleep(10, { clock: token.clock, token });
        }
        return reply(words.join(''));
      },
    },
  });
  await using runner = createRunner({ store: working, agents: { talker } });
  const { tenant, id } = await runner.start({ tenant: 'acme', agent: 'talker', input: 'talk' });
  let said = '';
  for await (const seen of followTask(reading, { tenant, id })) {
    expect(seen.type).not.toBe('taken-back');
    if (seen.type === 'entry' && seen.event.type === 'text') said += seen.event.text;
    // The end of a turn has all of its words, and says what was not shown before.
    if (seen.type === 'end')
      expect(seen.task).toMatchObject({ status: 'success', outcome: { answer: words.join('') } });
  }
  expect(words.join('').startsWith(said)).toBe(true);
});

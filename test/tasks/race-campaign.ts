import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ClaimRef } from '@whoa/tasks/store';
import { startChild, temporaryFolder } from './child.ts';
import { openStore } from './open-store.ts';
import type { SharedStoreKind } from './shared-stores.ts';

export interface RaceReport {
  readonly tasks: number;
  readonly ends: Record<string, number>;
  readonly violations: readonly string[];
}

/** Has three processes race to end every task, each in its own way, and checks every receipt against the end. */
export async function runRace(kind: SharedStoreKind, tasks: number): Promise<RaceReport> {
  using folder = temporaryFolder();
  await using shared = await kind.open();
  await using store = openStore(shared.location);
  const claims: ClaimRef[] = [];
  let started = 0;
  const createSome = async (): Promise<void> => {
    for (let next = started++; next < tasks; next = started++) {
      const receipt = await store.create({ tenant: 'race', agent: 'a', input: next });
      if (receipt.result !== 'created') throw new Error('not created');
      const { id } = receipt.task;
      const answer = await store.claim(id, { session: 's', claim: `claim-${next}`, worker: 'w', leaseMs: 3_600_000 });
      if (answer.result !== 'claimed') throw new Error('not claimed');
      claims.push(answer.claim);
    }
  };
  await Promise.all(Array.from({ length: 8 }, createSome));
  const claimsFile = join(folder.path, 'claims.json');
  writeFileSync(claimsFile, JSON.stringify(claims));
  const ways = ['success', 'failed', 'cancel'];
  const children = ways.map((way) => startChild('race-writer', [shared.location, claimsFile, way]));
  let ready = 0;
  for (const child of children) {
    child.process.on('message', ({ type }: { type: string }) => {
      if (type === 'ready' && ++ready % ways.length === 0) for (const one of children) one.process.send('go');
    });
  }
  type Done = { type: string; answers: Record<string, string> };
  const done = await Promise.all(children.map((child) => child.hear<Done>(({ type }) => type === 'done')));
  await Promise.all(children.map(({ ended }) => ended));
  const [success, failed, cancel] = done.map(({ answers }) => answers);
  const counts: Record<string, number> = {};
  const violations: string[] = [];
  for (const { id } of claims) {
    const status = (await store.get({ tenant: 'race', id }))!.status;
    counts[status] = (counts[status] ?? 0) + 1;
    const finishes = [success![id]!, failed![id]!];
    const truthful =
      // Exactly one writer ended it; every later one got how it had ended.
      finishes.filter((answer) => answer === `finished ${status}`).length === 1 &&
      finishes.filter((answer) => answer === `unchanged ${status}`).length === 1 &&
      // An accepted cancel took effect; any other got the end.
      (status === 'cancelled' ? cancel![id] === 'accepted cancelling' : cancel![id] === `too-late ${status}`);
    if (!truthful) violations.push(`${id} ${status}: ${[...finishes, cancel![id]].join(', ')}`);
  }
  return { tasks, ends: counts, violations };
}

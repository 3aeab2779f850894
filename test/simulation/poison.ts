import type { TaskStore } from '@whoa/tasks';
import type { SimulationContext } from './context.ts';
import type { SimulatedHistory } from './history.ts';

const TENANTS = ['acme', 'globex'] as const;
const HARMLESS = 8;
/** Two cannot crash a neighbour three times while it is the suspect of their session; three could. */
const MAX_POISONS = 2;

/** Creates tasks that kill their worker at their start, and harmless ones that show no progress. */
export class Poison {
  readonly #context: SimulationContext;

  constructor(context: SimulationContext) {
    this.#context = context;
  }

  plan(): void {
    const { random } = this.#context;
    const count = 1 + random.below(HARMLESS);
    const poisons = 1 + random.below(MAX_POISONS);
    for (let i = 0; i < count + poisons; i++) {
      const agent = i < count ? random.pick(['mute', 'mute', 'long']) : 'poison';
      // A second one may come when the first has already killed a worker.
      const at = random.below(i > count ? 20_000 : this.#context.workMs);
      this.#context.userAt(at, () => this.#create(agent, i));
    }
  }

  async #create(agent: string, i: number): Promise<void> {
    const { random, client } = this.#context;
    const task = { tenant: random.pick(TENANTS), agent, input: i, key: `task ${i}`, priority: random.below(2) };
    await this.#context.retryWhileUnavailable(() => client.create(task, { nonce: `nonce ${i}` }));
  }
}

/** A poison task fails because of its crashes. If nothing else went wrong, no other task does. */
export async function judgePoison(
  history: SimulatedHistory,
  { store, isQuiet }: { readonly store: TaskStore; readonly isQuiet: boolean },
): Promise<void> {
  for (const tenant of TENANTS) {
    for (const { id, agent, outcome } of (await store.list({ tenant })).tasks) {
      const isLost = outcome?.error?.code === 'WORKERS_LOST';
      if (agent === 'poison' && !isLost) {
        history.violations.push({
          promise: 'P1',
          what: `${id}: it killed its workers, and ended as ${outcome?.status}`,
        });
      }
      if (agent !== 'poison' && isLost && isQuiet) {
        history.violations.push({ promise: 'P1', what: `${id}: it failed because of its neighbours` });
      }
    }
  }
}

/** What decides in which wave a call runs. */
export interface Placed {
  readonly id: string;
  /** Calls whose results it needs. */
  readonly dependsOn?: readonly string[];
  /** Calls that share a key never share a wave. */
  readonly exclusive?: readonly string[];
}

/** Thrown when calls cannot be put in order. The text names the calls. */
export class PlanError extends Error {
  override readonly name: string = 'PlanError';
  readonly code: string = 'INVALID_PLAN';
}

/** Puts calls into waves: each as early as what it needs and its exclusive keys allow, in the order given. */
export function waves<Call extends Placed>(calls: readonly Call[]): Call[][] {
  const byId = indexById(calls);
  const placed = new Map<string, number>();
  const busyKeys: Set<string>[] = [];
  const plan: Call[][] = [];
  for (const call of inDependencyOrder(calls, byId)) {
    let wave = 0;
    for (const id of call.dependsOn ?? []) wave = Math.max(wave, placed.get(id)! + 1);
    while (call.exclusive?.some((key) => busyKeys[wave]?.has(key))) wave++;
    placed.set(call.id, wave);
    (plan[wave] ??= []).push(call);
    for (const key of call.exclusive ?? []) (busyKeys[wave] ??= new Set()).add(key);
  }
  return plan;
}

function indexById<Call extends Placed>(calls: readonly Call[]): Map<string, Call> {
  const byId = new Map<string, Call>();
  for (const call of calls) {
    if (byId.has(call.id)) throw new PlanError(`Two calls have the id '${call.id}'`);
    byId.set(call.id, call);
  }
  for (const { id, dependsOn = [] } of calls) {
    for (const needed of dependsOn) {
      if (!byId.has(needed)) throw new PlanError(`Call '${id}' depends on '${needed}', which is not among the calls`);
    }
  }
  return byId;
}

/** The calls in the order given, except that what a call needs comes before it. */
function inDependencyOrder<Call extends Placed>(calls: readonly Call[], byId: ReadonlyMap<string, Call>): Call[] {
  const order: Call[] = [];
  const state = new Map<string, 'open' | 'done'>();
  for (const start of calls) {
    // An explicit stack: a plan may be one long chain.
    const stack = [{ call: start, next: 0 }];
    if (state.has(start.id)) continue;
    state.set(start.id, 'open');
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const needed = top.call.dependsOn?.[top.next++];
      if (needed === undefined) {
        state.set(top.call.id, 'done');
        order.push(top.call);
        stack.pop();
      } else if (state.get(needed) === 'open') {
        const names = stack.map(({ call }) => call.id);
        throw new PlanError(
          `Calls depend on each other: ${[...names.slice(names.indexOf(needed)), needed].join(' → ')}`,
        );
      } else if (!state.has(needed)) {
        state.set(needed, 'open');
        stack.push({ call: byId.get(needed)!, next: 0 });
      }
    }
  }
  return order;
}

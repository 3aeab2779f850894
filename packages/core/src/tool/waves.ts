/** The parts of a call that decide in which wave it runs. */
export interface PlannedCall {
  readonly id: string;
  /** Ids of the calls whose results it needs. */
  readonly dependsOn?: readonly string[] | undefined;
  /** Calls that share a key never share a wave. */
  readonly exclusive?: readonly string[] | undefined;
}

/** Thrown when calls cannot be ordered. The message names the calls. */
export class PlanError extends Error {
  override readonly name: string = 'PlanError';
  readonly code: string = 'INVALID_PLAN';
}

/** A call that is being placed in a wave. */
interface Node<Call> {
  readonly call: Call;
  /** How many of its dependencies have been visited. */
  visited: number;
  isOpen: boolean;
  wave: number | undefined;
}

/** Groups calls into waves: each as early as its dependencies and its exclusive keys allow, in the order given. */
export function planWaves<Call extends PlannedCall>(calls: readonly Call[]): Call[][] {
  if (calls.length > 0 && calls.every(isFree) && new Set(calls.map(({ id }) => id)).size === calls.length) {
    // Most plans have nothing to order.
    return [[...calls]];
  }
  const nodes = indexById(calls);
  const keys = new KeyWaves();
  const plan: Call[][] = [];
  const add = (node: Node<Call>): void => {
    const { dependsOn, exclusive } = node.call;
    let wave = 0;
    if (dependsOn) for (const need of dependsOn) wave = Math.max(wave, nodes.get(need)!.wave! + 1);
    if (exclusive) wave = keys.take(exclusive, wave);
    (plan[wave] ??= []).push(node.call);
    node.wave = wave;
  };
  for (const node of nodes.values()) addAfterNeeds(node, nodes, add);
  return plan;
}

function isFree({ dependsOn, exclusive }: PlannedCall): boolean {
  return dependsOn === undefined && exclusive === undefined;
}

/** The waves in which each key is taken. */
class KeyWaves {
  /** For a taken wave, the next wave to try. The chain is shortened whenever it is followed. */
  readonly #next = new Map<string, Map<number, number>>();

  /** Returns the first wave from `from` on in which all of the keys are free, and takes them. */
  take(keys: readonly string[], from: number): number {
    let wave = from;
    for (let before = -1; before !== wave; ) {
      before = wave;
      for (const key of keys) wave = this.#free(key, wave);
    }
    for (const key of keys) this.#getNext(key).set(wave, wave + 1);
    return wave;
  }

  #free(key: string, from: number): number {
    const next = this.#getNext(key);
    let free = from;
    for (let to = next.get(free); to !== undefined; to = next.get(free)) free = to;
    for (let wave = from; wave !== free; ) {
      const to = next.get(wave)!;
      next.set(wave, free);
      wave = to;
    }
    return free;
  }

  #getNext(key: string): Map<number, number> {
    let next = this.#next.get(key);
    if (next === undefined) this.#next.set(key, (next = new Map<number, number>()));
    return next;
  }
}

function indexById<Call extends PlannedCall>(calls: readonly Call[]): Map<string, Node<Call>> {
  const nodes = new Map<string, Node<Call>>();
  for (const call of calls) {
    if (nodes.has(call.id)) throw new PlanError(`Two calls have the id '${call.id}'`);
    nodes.set(call.id, { call, visited: 0, isOpen: false, wave: undefined });
  }
  return nodes;
}

/** Places the dependencies of a call, then the call. */
function addAfterNeeds<Call extends PlannedCall>(
  start: Node<Call>,
  nodes: ReadonlyMap<string, Node<Call>>,
  add: (node: Node<Call>) => void,
): void {
  if (start.wave !== undefined) return;
  // An explicit stack: a plan may be one long chain.
  const stack = [start];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    top.isOpen = true;
    const next = nextNeed(top, nodes);
    if (next === undefined) {
      add(top);
      top.isOpen = false;
      stack.pop();
    } else if (next.isOpen) {
      const names = stack.slice(stack.indexOf(next)).map(({ call }) => call.id);
      throw new PlanError(`Calls depend on each other: ${[...names, next.call.id].join(' → ')}`);
    } else if (next.wave === undefined) stack.push(next);
  }
}

function nextNeed<Call extends PlannedCall>(
  node: Node<Call>,
  nodes: ReadonlyMap<string, Node<Call>>,
): Node<Call> | undefined {
  const id = node.call.dependsOn?.[node.visited++];
  if (id === undefined) return undefined;
  const need = nodes.get(id);
  if (need === undefined) {
    throw new PlanError(`Call '${node.call.id}' depends on '${id}', which is not among the calls`);
  }
  return need;
}

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

/** A call on its way into a wave. */
interface Node<Call> {
  readonly call: Call;
  /** How many of its needs have been looked at. */
  looked: number;
  isOpen: boolean;
  wave: number | undefined;
}

/** Puts calls into waves: each as early as what it needs and its exclusive keys allow, in the order given. */
export function waves<Call extends Placed>(calls: readonly Call[]): Call[][] {
  const nodes = indexById(calls);
  const busyKeys: Set<string>[] = [];
  const plan: Call[][] = [];
  const place = (node: Node<Call>): void => {
    const { dependsOn, exclusive } = node.call;
    let wave = 0;
    if (dependsOn) for (const need of dependsOn) wave = Math.max(wave, nodes.get(need)!.wave! + 1);
    while (exclusive?.some((key) => busyKeys[wave]?.has(key))) wave++;
    if (exclusive) for (const key of exclusive) (busyKeys[wave] ??= new Set()).add(key);
    (plan[wave] ??= []).push(node.call);
    node.wave = wave;
  };
  for (const node of nodes.values()) placeAfterNeeds(node, nodes, place);
  return plan;
}

function indexById<Call extends Placed>(calls: readonly Call[]): Map<string, Node<Call>> {
  const nodes = new Map<string, Node<Call>>();
  for (const call of calls) {
    if (nodes.has(call.id)) throw new PlanError(`Two calls have the id '${call.id}'`);
    nodes.set(call.id, { call, looked: 0, isOpen: false, wave: undefined });
  }
  return nodes;
}

/** Places what a call needs, then the call. */
function placeAfterNeeds<Call extends Placed>(
  start: Node<Call>,
  nodes: ReadonlyMap<string, Node<Call>>,
  place: (node: Node<Call>) => void,
): void {
  if (start.wave !== undefined) return;
  // An explicit stack: a plan may be one long chain.
  const stack = [start];
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    top.isOpen = true;
    const next = nextNeed(top, nodes);
    if (next === undefined) {
      place(top);
      top.isOpen = false;
      stack.pop();
    } else if (next.isOpen) {
      const names = stack.slice(stack.indexOf(next)).map(({ call }) => call.id);
      throw new PlanError(`Calls depend on each other: ${[...names, next.call.id].join(' → ')}`);
    } else if (next.wave === undefined) stack.push(next);
  }
}

function nextNeed<Call extends Placed>(
  node: Node<Call>,
  nodes: ReadonlyMap<string, Node<Call>>,
): Node<Call> | undefined {
  const id = node.call.dependsOn?.[node.looked++];
  if (id === undefined) return undefined;
  const need = nodes.get(id);
  if (need === undefined) {
    throw new PlanError(`Call '${node.call.id}' depends on '${id}', which is not among the calls`);
  }
  return need;
}

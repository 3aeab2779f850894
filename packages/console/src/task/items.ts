import type { CallModel, TurnModel } from '../model/run-model.ts';

/** Something of a run in the order in which it is shown: what was said in a turn, or one of its calls. */
export type Item = { readonly turn: TurnModel } | { readonly turn: TurnModel; readonly call: CallModel };

export function toItems(turn: TurnModel): Item[] {
  return [{ turn }, ...turn.calls.map((call) => ({ turn, call }))];
}

export function getKey(item: Item): string {
  return 'call' in item ? `call ${item.call.id}` : `turn ${item.turn.number} ${item.turn.startedAt}`;
}

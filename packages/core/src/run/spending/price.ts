import { findClosestName } from '../../stop/closest-name.ts';
import { isObject, type Rule, rule, SettingsError, unexpected } from '../../stop/settings.ts';
import type { Usage } from '../history/message.ts';

/** What a model costs, in USD per million tokens. */
interface Price {
  readonly input: number;
  readonly output: number;
  /** Input that the provider read from its cache. Defaults to `input`. */
  readonly cachedInput?: number | undefined;
}

export interface Prices {
  /** By the id of the model, as its provider names it. */
  readonly prices?: Readonly<Record<string, Price>> | undefined;
  /** Returns what a request costs, in USD. Used instead of `prices`. */
  readonly price?: ((usage: Usage, model: string) => number) | undefined;
}

/** The names of a model: its own, and its provider's id if that differs. */
export type ModelIds = readonly [name: string, id?: string];

/** Millionths of a US dollar in a dollar: costs are kept in these, as whole numbers. */
export const MICRO_USD = 1_000_000;

const amount: Rule = rule('0 USD or more', (value) => Number.isFinite(value) && (value as number) >= 0);

/** The rule for prices by model. */
export const pricesRule: Rule = (value, field) => {
  if (!isObject(value)) throw unexpected(field, value, "prices by model: { 'model-id': { input, output } }");
  const entries = Object.entries(value).map(([model, given]): [string, Price] => {
    const own = `${field}['${model}']`;
    if (!isObject(given)) throw unexpected(own, given, 'a price: { input, output }, in USD per million tokens');
    const { input, output, cachedInput = input } = given as Price;
    for (const [name, cost] of Object.entries({ input, output, cachedInput })) amount(cost, `${own}.${name}`);
    return [model, { input, output, cachedInput }];
  });
  return Object.fromEntries(entries);
};

/** Returns what a request costs in millionths of a dollar, rounded up; `undefined` if that is not known. */
export function findPrice({ prices, price }: Prices, usage: Usage, ids: ModelIds): number | undefined {
  try {
    const usd = price === undefined ? fromTable(prices, usage, ids) : price(usage, ids[1] ?? ids[0]);
    // Less than a rounding error of the product is not a millionth more.
    const micro = typeof usd === 'number' ? Math.ceil(usd * MICRO_USD - 1e-6) : NaN;
    return Number.isSafeInteger(micro) && usd! >= 0 ? Math.max(0, micro) : undefined;
  } catch {
    return undefined;
  }
}

function fromTable(prices: Prices['prices'] = {}, usage: Usage, ids: ModelIds): number | undefined {
  const id = ids.find((one) => one !== undefined && Object.hasOwn(prices, one));
  if (id === undefined) return undefined;
  const { input, output, cachedInput = input } = prices[id]!;
  const cached = Math.min(usage.cachedInputTokens ?? 0, usage.inputTokens);
  return ((usage.inputTokens - cached) * input + cached * cachedInput + usage.outputTokens * output) / MICRO_USD;
}

/** Says that a model has no price, and which one may have been meant. */
export function describeMissingPrice({ prices = {}, price }: Prices, ids: ModelIds): string {
  const id = ids[1] ?? ids[0];
  if (price !== undefined) return `no price for '${id}': budgets.price returned no amount of 0 or more`;
  const known = Object.keys(prices);
  const closest = ids.map((one) => findClosestName(one ?? '', known)).find((one) => one !== undefined);
  const hint = closest === undefined ? '' : `; the nearest known one is '${closest}'`;
  return `no price for '${id}'${hint}`;
}

/** Throws if one of these models has no price in the table. What `price` returns is known only when it is called. */
export function checkPrices(given: Prices, models: readonly (ModelIds | undefined)[]): void {
  if (given.price !== undefined) return;
  for (const ids of models) {
    if (ids === undefined)
      throw new SettingsError(
        'planner.model',
        'with budgets.usd a planner must say which model it asks, and report usage',
      );
    if (ids.some((id) => id !== undefined && Object.hasOwn(given.prices ?? {}, id))) continue;
    const advice = `add it, in USD per million tokens: { '${ids[1] ?? ids[0]}': { input, output } }`;
    throw new SettingsError('budgets.prices', `${describeMissingPrice(given, ids)}; ${advice}`);
  }
}

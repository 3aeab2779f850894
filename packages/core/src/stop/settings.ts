import { findClosestName } from './closest-name.ts';

export { findClosestName };

/** Thrown when a setting is not valid. Names the field, the value and what is allowed. */
export class SettingsError extends TypeError {
  override readonly name: string = 'SettingsError';
  readonly code: string = 'INVALID_SETTING';
  /** The setting, for example `budgets.maxDurationMs` or `tools[1].input`. */
  readonly field: string;

  constructor(field: string, what: string, cause?: unknown) {
    super(`${field}: ${what}`, cause === undefined ? undefined : { cause });
    this.field = field;
  }
}

/** Creates the error for a value that is not what was expected. */
export function unexpected(field: string, value: unknown, expected: string): SettingsError {
  return new SettingsError(field, `expected ${expected}, got ${describeValue(value)}`);
}

/** Checks a setting: returns the value to keep, and throws for an invalid one. Not called for absent settings. */
export interface Rule {
  (value: unknown, field: string): unknown;
  readonly isRequired?: boolean;
}

/** One rule for every setting: a setting without a rule does not compile. */
export type Rules<Settings> = { readonly [Name in Extract<keyof Settings, string>]-?: Rule };

interface ReadOptions {
  /** The path of the object that holds the settings, if they are nested. */
  readonly within?: string;
  /** For objects that hold more than settings: allows other names. */
  readonly allowUnknown?: boolean;
}

/**
 * Returns a checked copy of some settings. Each is read once, so the value that was checked is the value that is used.
 * `undefined` is left out, so it cannot override a default. An unknown name is rejected, because it may be a
 * misspelling.
 */
export function readSettings<Settings>(given: unknown, rules: Rules<Settings>, options: ReadOptions = {}): Settings {
  const { within, allowUnknown = false } = options;
  if (!isObject(given)) throw unexpected(within ?? 'options', given, `an object with ${formatNames(rules)}`);
  const prefix = within === undefined ? '' : `${within}.`;
  const settings: Record<string | symbol, unknown> = {};
  let field = within ?? 'options';
  try {
    if (!allowUnknown) refuseUnknown(given, rules, prefix);
    for (const name in rules) {
      field = prefix + name;
      const value = (given as Record<string, unknown>)[name];
      const check: Rule = (rules as Record<string, Rule>)[name]!;
      if (value !== undefined || check.isRequired) settings[name] = check(value, field);
    }
    // Symbols carry data between parts of this package.
    for (const key of Object.getOwnPropertySymbols(given)) settings[key] = (given as Record<symbol, unknown>)[key];
  } catch (error) {
    if (error instanceof SettingsError) throw error;
    throw new SettingsError(field, 'it could not be read', error);
  }
  return settings as Settings;
}

function refuseUnknown(given: object, rules: object, prefix: string): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(rules, name)) continue;
    const closest = findClosestName(name, Object.keys(rules));
    const meant = closest === undefined ? 'the' : `did you mean '${closest}'? The`;
    throw new SettingsError(`${prefix}${cut(name)}`, `unknown setting; ${meant} settings are ${formatNames(rules)}`);
  }
}

function formatNames(rules: object): string {
  return Object.keys(rules).join(', ');
}

/** The rule for a required setting. */
export function required(rule: Rule): Rule {
  return Object.assign((value: unknown, field: string) => rule(value, field), { isRequired: true });
}

/** Wraps a rule for values that may be anything: a value that throws when it is read is rejected too. */
export function safely(check: Rule): Rule {
  return (value, field) => {
    try {
      return check(value, field);
    } catch (error) {
      throw error instanceof SettingsError ? error : new SettingsError(field, 'it could not be read', error);
    }
  };
}

/** Creates a rule from a description and a predicate. */
export function rule(expected: string, accepts: (value: unknown) => boolean): Rule {
  return (value, field) => {
    if (!accepts(value)) throw unexpected(field, value, expected);
    return value;
  };
}

export const anything: Rule = (value) => value;
export const text: Rule = /*#__PURE__*/ rule('a string', (value) => typeof value === 'string');
export const nonEmptyText: Rule = /*#__PURE__*/ rule(
  'a non-empty string',
  (value) => typeof value === 'string' && value !== '',
);
export const flag: Rule = /*#__PURE__*/ rule('true or false', (value) => typeof value === 'boolean');
export const callback: Rule = /*#__PURE__*/ rule('a function', (value) => typeof value === 'function');

/** A time limit: `Infinity` means never. */
export const timeLimitMs: Rule = /*#__PURE__*/ rule(
  '0 ms or more, or Infinity for never',
  (value) => isNumber(value) && value >= 0,
);

/** A pause. */
export const pauseMs: Rule = /*#__PURE__*/ rule(
  '0 ms or more',
  (value) => Number.isFinite(value) && (value as number) >= 0,
);

/** A time that Whoa always waits, so it must be finite. */
export function boundedMs({ max, orZero = false }: { readonly max: number; readonly orZero?: boolean }): Rule {
  const range = `${orZero ? '0' : 'more than 0'} to ${max} ms`;
  return rule(range, (value) => isNumber(value) && (value > 0 || (orZero && value === 0)) && value <= max);
}

/** A whole number from `min`. `orInfinity` also allows `Infinity`, for no limit. */
export function count({ min = 1, orInfinity = false }: { min?: number; orInfinity?: boolean } = {}): Rule {
  return rule(
    `a whole number from ${min}${orInfinity ? ', or Infinity for no limit' : ''}`,
    (value) => isNumber(value) && value >= min && (Number.isSafeInteger(value) || (orInfinity && value === Infinity)),
  );
}

export function oneOf(...values: readonly string[]): Rule {
  return rule(values.map((value) => `'${value}'`).join(' or '), (value) => values.includes(value as string));
}

/** An object that has certain methods. A string is not shown: it may be an address with a password. */
export function having(what: string, ...methods: readonly string[]): Rule {
  const expected = `${what} (an object with ${methods.map((method) => `${method}()`).join(', ')})`;
  return (value, field) => {
    if (hasMethods(value, methods)) return value;
    throw typeof value === 'string'
      ? new SettingsError(field, `expected ${expected}, got a string`)
      : unexpected(field, value, expected);
  };
}

export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return isObject(value) && methods.every((method) => typeof (value as Record<string, unknown>)[method] === 'function');
}

/** A list whose entries all follow the rule. */
export function listOf(entry: Rule): Rule {
  return (value, field) => {
    if (!isList(value)) throw unexpected(field, value, 'a list');
    return Array.from(value as readonly unknown[], (one, index) => entry(one, `${field}[${index}]`));
  };
}

/** Nested settings. */
export function group<Settings>(rules: Rules<Settings>): Rule {
  return (value, field) => readSettings(value, rules, { within: field });
}

/** Every event of any package, because one object of hooks may serve an agent, conversations and a runner. */
const EVENTS: readonly string[] =
  /*#__PURE__*/ `any hook-error run-start run-end turn-start turn-end turn-retry text thinking call-planned call-start call-update
 call-event call-end call-ended-late call-waiting wave-start wave-end approval-requested approval-answered cleanup-error cancel-requested
 level-changed steer-delivered spending budget-asked budget-answered history-compacted undo-start undo-end work-abandoned events-skipped message-received message-answered
 task-start task-end task-left checker-error store-error`.split(/\s+/);

/** Listeners by event. They are not copied, because they may be methods of an object. */
export const hooks: Rule = (value, field) => {
  if (!isObject(value)) throw unexpected(field, value, 'an object with functions');
  for (const [name, hook] of Object.entries(value)) {
    if (hook !== undefined) callback(hook, `${field}.${cut(name)}`);
    if (!EVENTS.includes(name))
      throw new SettingsError(`${field}.${cut(name)}`, `unknown event; use ${EVENTS.join(', ')}`);
  }
  return value;
};

/** The longest list that is read: an object that lies about its length must not be read forever. */
const MAX_LIST_LENGTH = 1_000_000;

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) && value.length <= MAX_LIST_LENGTH;
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function isNumber(value: unknown): value is number {
  return typeof value === 'number';
}

/** Describes a value briefly. Never throws and runs no code of the value. */
function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(cut(value));
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'symbol') return 'a symbol';
  if (!isObject(value)) return cut(String(value));
  try {
    return Array.isArray(value) ? 'a list' : 'an object';
  } catch {
    return 'a revoked proxy';
  }
}

const MAX_SHOWN_CHARACTERS = 80;

function cut(words: string): string {
  return words.length <= MAX_SHOWN_CHARACTERS ? words : `${words.slice(0, MAX_SHOWN_CHARACTERS)}…`;
}

// What a change proves, and what waits for the night: there, each file that imports this runs whole.

/** Whether this is the night. */
export const isNight: boolean = process.env['WHOA_NIGHT'] !== undefined;

/** All cases at night, and those of a change otherwise. */
export function forChange<Case>(
  all: readonly Case[],
  isChosen: (one: Case, index: number) => boolean,
): readonly Case[] {
  return isNight ? all : all.filter(isChosen);
}

/** The same by their names, which must exist. */
export function chosenForChange<Case extends { readonly name: string }>(
  all: readonly Case[],
  names: readonly string[],
): readonly Case[] {
  const unknown = names.filter((name) => !all.some((one) => one.name === name));
  if (unknown.length > 0) throw new Error(`no case is called ${unknown.join(' or ')}`);
  return forChange(all, ({ name }) => names.includes(name));
}

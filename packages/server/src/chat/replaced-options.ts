/** The options of `streamText` that a turn has too. */
const COMPOSED =
  /\b(stopWhen|prepareStep|onStepFinish|onStepEnd|providerOptions|experimental_transform|abortSignal)\b/g;
/** The first parameter of a function, of a method or of an arrow function. */
const TURN = /^(?:async\s+)?(?:function\b\s*)?[\w$]*\s*\(\s*([\w$]+)|^(?:async\s+)?([\w$]+)\s*=>/;

/**
 * Warns in development if `reply` spreads its turn next to options that both have: the later ones replace the others. It reads
 * the code of the function, so it does not see options that come from elsewhere.
 */
export function warnOfReplaced(reply: (...given: never[]) => unknown): void {
  if (process.env['NODE_ENV'] === 'production') return;
  const code = String(reply);
  const [, named, single = named] = TURN.exec(code) ?? [];
  if (single === undefined || !code.includes(`...${single}`)) return;
  const names = [...new Set(code.match(COMPOSED))].filter((name) => !code.includes(`${single}.${name}`));
  if (names.length === 0) return;
  const advice = `pass your options to ${single}.with({ … }), and both have effect`;
  const words = `reply: \`...${single}\` and your ${names.join(', ')} replace each other`;
  process.emitWarning(`${words}; ${advice}`, { type: 'WhoaWarning' });
}

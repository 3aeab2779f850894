const AT_ONCE = 16;

/**
 * Asks for all, a few at the same time.
 *
 * @returns The answers, in order.
 */
export async function mapInBatches<One, Answer>(
  all: readonly One[],
  ask: (one: One) => Promise<Answer>,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let i = 0; i < all.length; i += AT_ONCE) {
    answers.push(...(await Promise.all(all.slice(i, i + AT_ONCE).map(ask))));
  }
  return answers;
}

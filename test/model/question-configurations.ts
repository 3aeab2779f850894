/** Switches of `questions.pml`, with a name. */
export interface QuestionCheck {
  readonly name: string;
  readonly switches: readonly string[];
}

const toCheck = (text: string): QuestionCheck => {
  const [name = '', ...switches] = text.split(' ');
  return { name, switches: switches.flatMap((one) => (one === 'ONE' ? ['PEOPLE=1', 'K1=0'] : [one])) };
};

/** Small enough for every change: one question, one person, nothing that changes the effect of a call. */
export const SMALL_QUESTIONS: readonly string[] = ['PEOPLE=1', 'K1=0', 'CHG=0'];

/** `npm run long -- questions`, the smallest first. None of them has an error. */
export const largeQuestions: readonly QuestionCheck[] = [
  'attempts ONE MAXATT=1',
  'one-question ONE',
  'replay-safe ONE SAFE',
  'full-slots ONE LONG',
  'pause ONE PAUSE=1',
  'steer ONE MSG=2',
  'client PEOPLE=1 K1=2',
  'queue-and-release ONE MSG=1 RELS=1',
  'two-people K1=0',
  'two-questions PEOPLE=1',
].map(toCheck);

/** Bugs in the protocol, each with the smallest configuration that finds it. Checked on every change. */
export const plantedQuestionBugs: readonly QuestionCheck[] = [
  'BUG_NOWAKE BUG_NOWAKE ONE CHG=0 F=0',
  'NO_PARKRUN NO_PARKRUN NO_PARKANS PEOPLE=1 CHG=0 F=0',
  'NO_CANCELQ NO_CANCELQ ONE CHG=0 F=0',
].map(toCheck);

/** One rule of the protocol taken away, or one guard removed. */
export const slowQuestionBugs: readonly QuestionCheck[] = [
  'NO_EXPIRY NO_EXPIRY ONE F=0',
  'NO_SWEEP NO_SWEEP PEOPLE=1',
  'NO_PARKRUN NO_PARKRUN PEOPLE=1',
  'NO_CLOSEWITH NO_CLOSEWITH ONE CHG=0',
  'NO_SEAL NO_SEAL ONE',
  'NO_STEER NO_STEER ONE MSG=2 F=0 CANC=0 CHG=0',
  'NO_WITHDRAW NO_WITHDRAW ONE MSG=1',
  'NO_END NO_END ONE MAXATT=1',
  'NO_CLIENT NO_CLIENT PEOPLE=1 K1=2',
  'NO_SETTLE NO_SETTLE ONE PAUSE=1',
  'NO_SETTLE NO_SETTLE ONE LONG',
  'NO_HELDDIGEST NO_HELDDIGEST ONE',
  'NO_REPLAY NO_REPLAY ONE SAFE',
  'NO_OLDINTENT NO_OLDINTENT ONE SAFE CHG=0',
  ...'NODIGEST LEASECHECK NONCE ANSREADY NOWAKE CANCELPARK SWEEPQ FENCE START SUCCESS EXPANS'
    .split(' ')
    .map((bug) => `BUG_${bug} BUG_${bug} ONE`),
  'BUG_PARKTOLD BUG_PARKTOLD PEOPLE=1 MSG=2',
  'BUG_ANSID BUG_ANSID K1=0',
  'BUG_FIRST BUG_FIRST K1=0',
  'BUG_CANCELINIT BUG_CANCELINIT ONE RELS=1',
  'BUG_WDANS BUG_WDANS ONE MSG=1',
].map(toCheck);

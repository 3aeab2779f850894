/** Switches of `live.pml`, with a name. */
export interface LiveCheck {
  readonly name: string;
  readonly switches: readonly string[];
}

const toCheck = (text: string): LiveCheck => {
  const [name = '', ...switches] = text.split(' ');
  return { name, switches };
};
const BOTH = 'EPOCHS=2 UNITS=2 SLOTS=2';
const FAILOVER = 'FAILOVER FIRST=0 UNITS=1 SLOTS=2 EPOCHS=2';
const COUNT = 'LIVE COUNT EPOCHS=1 UNITS=3 SLOTS=2';

/** Checked on every change. */
export const smallLive: readonly LiveCheck[] = [
  `count ${COUNT}`,
  'two-losses LIVE LOSS=2 EPOCHS=1 UNITS=2 SLOTS=2',
].map(toCheck);

/** `npm run long -- live`. None of them has an error. */
export const largeLive: readonly LiveCheck[] = [
  `safety ${BOTH}`,
  'tight TIGHT EPOCHS=1 UNITS=3 SLOTS=2',
  'three-workers EPOCHS=3 UNITS=1 SLOTS=2',
  `failover ${FAILOVER}`,
  `live LIVE ${BOTH}`,
  `live-failover LIVE ${FAILOVER}`,
  'one-loss LIVE LOSS=1 EPOCHS=2 UNITS=1 SLOTS=2',
].map(toCheck);

/** Bugs of the reader, the worker or the ledger. The model rejects each. */
export const liveBugs: readonly LiveCheck[] = [
  ...'NO_EPOCH_CHECK KEPT_NOT_COMPARED GAP_APPLIED EPOCH_AFTER_ENTRIES NO_TAKE_BACK END_KEEPS_DRAFT UNFENCED CONFIRM_ALL COVERED_IS_SHOWN_AGAIN ENDS_UNFLUSHED'
    .split(' ')
    .map((bug) => `${bug} BUG_${bug} ${BOTH}`),
  `NO_BASE BUG_NO_BASE TEXT_EPOCH_FROM_FRAMES ${BOTH}`,
  `MARKER_TAKES_BACK BUG_MARKER_TAKES_BACK TIGHT ${BOTH}`,
  ...'INTEREST_AFTER_THE_RECORD NO_APPEND_WHEN_WATCHED ANSWER_FORGETS_THE_HINT FORGETS_WHILE_READING TWO_READS'
    .split(' ')
    .map((bug) => `${bug} BUG_${bug} LIVE ${BOTH}`),
  `READ_EACH_GAP BUG_READ_EACH_GAP ${COUNT}`,
  ...'CLAIM_NOT_COMPARED FENCED_BY_EPOCH_ALONE'.split(' ').map((bug) => `${bug} BUG_${bug} ${FAILOVER}`),
].map(toCheck);

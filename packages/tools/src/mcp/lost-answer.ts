/** Thrown when a call was sent but its response was lost. */
export class LostAnswerError extends Error {
  override readonly name: string = 'LostAnswerError';
}

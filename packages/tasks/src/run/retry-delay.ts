/** The pause before a request is repeated that the store failed or did not answer. */
export const RETRY_DELAY_MS = 100;

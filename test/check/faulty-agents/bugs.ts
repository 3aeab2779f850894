/** One bug for each class that the kit must catch, and the checks that catch it. */
export const BUGS = {
  'end-turn': { what: 'says end_turn when it was cancelled', caughtBy: ['cancel-streaming'] },
  'abort-error': { what: 'lets the error of an aborted request become the answer', caughtBy: ['no-error-stream'] },
  'never-answers': { what: 'never answers a cancelled prompt', caughtBy: ['cancel-streaming'] },
  'two-ends': { what: 'answers a cancelled prompt twice', caughtBy: ['one-end'] },
  'sticky-cancel': { what: 'keeps an idle cancel for the next prompt', caughtBy: ['idle-cancel'] },
  'lost-race': {
    what: 'loses a cancel that comes in one piece with its prompt',
    caughtBy: ['same-chunk-prompt-first'],
  },
  'all-sessions': { what: 'cancels every session', caughtBy: ['other-conversation'] },
  'second-cancel': { what: 'keeps the second of two cancels for the next prompt', caughtBy: ['double-cancel'] },
  'no-next': { what: 'takes no prompt after a cancel', caughtBy: ['next-works', 'stop-go-stop'] },
  'model-goes-on': { what: 'answers, and goes on reading from the model', caughtBy: ['model-stopped'] },
  'asks-again': { what: 'asks the model once more after the cancel', caughtBy: ['no-further-request'] },
  'late-call': { what: 'runs the call of an interrupted reply', caughtBy: ['no-late-call'] },
  'second-call': { what: 'runs the next call although the first was cancelled', caughtBy: ['no-second-call'] },
  'open-calls': { what: 'leaves calls shown as running', caughtBy: ['calls-closed'] },
  'late-update': { what: 'closes its calls after the answer', caughtBy: ['quiet-after-end'] },
  'tool-goes-on': { what: 'answers, and lets the tool go on', caughtBy: ['late-effect', 'left-root'] },
  'only-root': { what: 'ends the process of the tool, not its children', caughtBy: ['left-child'] },
  'only-sigterm': { what: 'asks the process of the tool to end, and waits for it', caughtBy: ['unresponsive-tool'] },
  'sigterm-and-go': { what: 'asks the process of the tool to end, and does not look', caughtBy: ['left-unresponsive'] },
  'forgets-text': { what: 'drops what the model had said', caughtBy: ['next-knows-text'] },
  'forgets-turn': { what: 'drops the cancelled turn', caughtBy: ['next-knows-prompt', 'next-keeps-finished'] },
  'dangling-call': { what: 'leaves a call without a result in the history', caughtBy: ['next-valid-call'] },
  'broken-arguments': { what: 'keeps half of the input of a call', caughtBy: ['next-valid-arguments'] },
  'claims-success': { what: 'tells the model that the call went well', caughtBy: ['next-knows-call'] },
  'waits-for-person': { what: 'waits for an answer that never comes', caughtBy: ['question-unanswered'] },
  'late-yes': { what: 'runs what is allowed after the cancel', caughtBy: ['question-late-yes'] },
  'keeps-question': { what: 'leaves its question open', caughtBy: ['question-withdrawn'] },
  'ignores-eof': { what: 'goes on when its input ends', caughtBy: ['exit-eof-idle'] },
  'ignores-sigterm': { what: 'ignores SIGTERM', caughtBy: ['exit-sigterm-idle'] },
  orphans: { what: 'exits and leaves its tools running', caughtBy: ['orphans-sigterm'] },
  floods: { what: 'goes on sending updates after its answer', caughtBy: ['quiet-after-end'] },
  dies: { what: 'exits when it is cancelled', caughtBy: ['cancel-streaming'] },
  daemons: { what: 'starts commands as daemons, and loses them', caughtBy: ['left-root'] },
  slow: { what: 'takes two seconds to stop', caughtBy: ['latency-reply'] },
  'trusts-folder': { what: 'starts the MCP servers that a file in its folder names', caughtBy: ['resist-settings'] },
  'wrong-cancel-request': { what: 'says end_turn when its request was cancelled', caughtBy: ['cancel-request'] },
} as const;
export type Bug = keyof typeof BUGS;

/**
 * Agents that do nothing wrong: `no-cancel-request` supports only what the protocol requires, `side-by-side` runs the
 * calls of a reply together and takes half a second to end them. `garbage` writes lines to its standard output that are
 * not messages, which the kit ignores.
 */
export type Flawless = 'none' | 'no-cancel-request' | 'side-by-side' | 'garbage';

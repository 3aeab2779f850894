-- Written by `npm run rules` from the rules in TypeScript.
-- The newest format of stored data that this version can use, and the oldest.
local FORMAT = 1
local OLDEST_FORMAT = 1
-- The settings that the store holds.
local STORED = { 'retentionMs', 'conversationRetentionMs' }
-- In the order of the table.
local STATUSES = { 'init', 'running', 'cancelling', 'success', 'failed', 'cancelled' }
local IS_FINAL = { init = false, running = false, cancelling = false, success = true, failed = true, cancelled = true }
-- By the action and the status before: the status after it, or why it is rejected.
local STATUS_AFTER = {
  claim = { init = 'running', running = 'held', cancelling = 'cancelling', success = 'final', failed = 'final', cancelled = 'final' },
  release = {
    init = 'not-running',
    running = 'init',
    cancelling = 'cancelling',
    success = 'final',
    failed = 'final',
    cancelled = 'final',
  },
  cancel = {
    init = 'cancelled',
    running = 'cancelling',
    cancelling = 'cancelling',
    success = 'final',
    failed = 'final',
    cancelled = 'final',
  },
  success = {
    init = 'not-running',
    running = 'success',
    cancelling = 'cancelled',
    success = 'final',
    failed = 'final',
    cancelled = 'final',
  },
  failed = {
    init = 'not-running',
    running = 'failed',
    cancelling = 'cancelled',
    success = 'final',
    failed = 'final',
    cancelled = 'final',
  },
  cancelled = {
    init = 'not-running',
    running = 'cancelled',
    cancelling = 'cancelled',
    success = 'final',
    failed = 'final',
    cancelled = 'final',
  },
}
-- By the policy and the status of the current task: what happens to a new one.
local ADMISSION = {
  replace = { none = 'start', init = 'replace', running = 'replace', cancelling = 'replace' },
  queue = { none = 'start', init = 'wait', running = 'wait', cancelling = 'wait' },
  merge = { none = 'start', init = 'merge', running = 'merge', cancelling = 'merge' },
  steer = { none = 'start', init = 'steer', running = 'steer', cancelling = 'wait' },
  reject = { none = 'start', init = 'reject', running = 'reject', cancelling = 'reject' },
}
local LEVEL_RANKS = { drain = 1, abort = 2, kill = 3 }
local GRACEFUL = { level = 'drain', abortMs = 10000, killMs = 12000 }
local OVERDUE = { kind = 'deadline', message = 'the deadline of the task has passed' }
local LOST_MESSAGE = 'its workers were lost %d times: fix what ends them, then requeue the task'
-- Ready queues: of tasks to settle, and how those of suspects and of tasks to undo start.
local SETTLE = '*'
local SUSPECTS = '*?'
local UNDO = '*!'
local BACKGROUND = 'background/'
local LIMITS = {
  maxCommands = 100,
  maxNonces = 100,
  maxQueued = 100,
  maxDebounced = 1000,
  maxOpenQuestions = 32,
  maxOrders = 200,
  maxPromoted = 100,
  maxCrashes = 20,
  maxPurged = 10,
  preferredWorkerMs = 5000,
  crashBackoffMs = 500,
  maxCrashBackoffMs = 60000,
  deathDelaySteps = 8,
  suspectAttempts = 2,
  suspectWaitMs = 1000,
  idleWorkerTtlMs = 120000,
  sweepRequestIntervalMs = 1000,
  sessionRetentionMs = 86400000,
  contactShare = 0.125,
  outageShare = 0.5,
}
local SIZES = { inputBytes = 4194304, outcomeBytes = 4194304, historyBytes = 67108864, answerBytes = 262144 }
local MAX_SHOWN_TASKS = 100

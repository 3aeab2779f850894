-- Stopping: levels only rise, deadlines only move closer, the first reason is kept.

local function higher(a, b)
  if b and LEVEL_RANKS[b] > LEVEL_RANKS[a] then return b end
  return a
end

-- Returns the current level of a stop, which rises as its deadlines pass.
local function level_now(task)
  local climbed = task.stopLevel
  if now >= task.killAt then climbed = 'kill' elseif now >= task.abortAt then climbed = 'abort' end
  return higher(climbed, task.stopLevel)
end

-- Returns whether a task may have had effects. Then it must be settled, not just ended.
local function has_started(task)
  return task.status ~= 'init' or task.position > 0
end

-- Orders the worker of a task to stop; if no worker holds it, a free worker settles it.
local function order_stop(task, asked)
  local abortAt, killAt = now + asked.abortMs, now + asked.killMs
  local level, undo, answer = asked.level, asked.undo, 'accepted'
  if task.stopLevel then
    local reached = level_now(task)
    local isStronger = LEVEL_RANKS[level] > LEVEL_RANKS[reached] or abortAt < task.abortAt or killAt < task.killAt
      or (undo and task.undo ~= '1')
    if not isStronger then return 'unchanged' end
    answer = 'escalated'
    level, undo = higher(level, reached), undo or task.undo == '1'
    abortAt, killAt = math.min(abortAt, task.abortAt), math.min(killAt, task.killAt)
  end
  close_open(task, 'cancelled')
  -- A started task must be settled, not just ended, even if no worker holds it at the moment.
  put(task, 'status', STATUS_AFTER.cancel[task.status == 'init' and 'running' or task.status])
  put(task, 'stopLevel', level)
  put(task, 'abortAt', abortAt)
  put(task, 'killAt', killAt)
  put(task, 'undo', undo and '1' or '0')
  if not task.stopReason then put(task, 'stopReason', asked.reason) end
  if task.stage == 'held' then
    send_order(task, 'cancel')
  else
    put_order(task)
    put(task, 'worker', nil)
    notify('cancel', task)
    make_ready(task)
  end
  return answer
end

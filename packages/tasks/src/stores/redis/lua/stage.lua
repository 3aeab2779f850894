-- The next stage of a live task, how it ends, and who is notified.

-- A worker gets no hints about what it changed itself. A stop includes the signed order: tasks of one take share
-- their claim, and published messages can be read and replayed for another of them.
local function notify(kind, task, isOwn)
  local hint = { kind, task.id, task.tenant, task.worker or '', task.conversation or '' }
  redis.call('SPUBLISH', tag .. 'changes:' .. task.tenant, cjson.encode(hint))
  if isOwn or not task.worker then return end
  if kind == 'cancel' and task.claim then
    hint[6] = table.concat({
      task.epoch, redis.sha1hex(task.claim .. ' ' .. task.id), task.orderNumber, task.stopLevel, task.abortAt, task.killAt,
      task.undo, task.stopReason,
    }, ' ')
  end
  redis.call('SPUBLISH', tag .. 'inbox:' .. task.worker, cjson.encode(hint))
end

local function to_reason(kind, message)
  return '{"kind":"' .. kind .. '","message":"' .. message .. '","at":' .. now .. '}'
end

-- isListed: other tasks are ready there, so its queue is listed.
local function open_ready_queue(readyQueue, tenant, isListed)
  local key = tag .. 'ready-queues:' .. readyQueue
  -- A ready queue whose last task was claimed by its id or cancelled is still open.
  if not isListed then redis.call('ZADD', tag .. 'queues', 0, pair(to_agent(readyQueue), tenant)) end
  if redis.call('ZSCORE', key, tenant) then return end
  redis.call('ZADD', key, redis.call('HINCRBY', tag .. 'domain', 'tick', 1), tenant)
end

local function unpark(worker, agents)
  redis.call('HDEL', tag .. 'idle-workers', worker)
  redis.call('ZREM', tag .. 'waiters:*', worker)
  for _, agent in ipairs(agents) do redis.call('ZREM', tag .. 'waiters:' .. agent, worker) end
end

-- Notifies one waiting worker that a task is ready. A worker that has not asked for long is gone.
local function wake_worker(readyQueue)
  local agent = to_agent(readyQueue)
  for _ = 1, LIMITS.maxPromoted do
    local popped = redis.call('ZPOPMIN', tag .. 'waiters:' .. agent)
    local worker = popped[1]
    if not worker then return end
    local stored = redis.call('HGET', tag .. 'idle-workers', worker)
    if stored then unpark(worker, cjson.decode(string.match(stored, '^%S+ (.*)$'))) end
    if tonumber(popped[2]) >= now - LIMITS.idleWorkerTtlMs then
      redis.call('SPUBLISH', tag .. 'inbox:' .. worker, cjson.encode({ 'ready', worker, agent }))
      return
    end
  end
end

local function make_ready(task, isListed)
  put_ready(task)
  save(task)
  local readyQueue = to_ready_queue(task)
  open_ready_queue(readyQueue, task.tenant, isListed)
  wake_worker(readyQueue)
end

local function delay_until(task, at)
  put_delay(task, at)
  save(task)
end

-- Moves a task on when it is next: it waits for its start time, then for its preferred worker, then any worker can take
-- it.
local function promote(task, isListed)
  put(task, 'policy', nil)
  if task.notBefore and task.notBefore > now then return delay_until(task, task.notBefore) end
  if not task.worker then return make_ready(task, isListed) end
  delay_until(task, now + LIMITS.preferredWorkerMs)
  notify('preferred', task)
end

-- Changes the orders of a task. They are sent to its worker until it confirms. A parked task needs a worker then.
local function send_order(task, kind)
  local isParked = task.stage == 'parked'
  put_order(task)
  if not isParked then
    save(task)
    notify(kind, task)
    return
  end
  notify(kind, task)
  put_wake(task)
  notify('preferred', task)
  make_ready(task)
end

-- Lets workers take the tasks of a tenant again.
local function resume_tenant(tenant)
  local capped = tag .. 'capped:' .. tenant
  local readyQueues = redis.call('SMEMBERS', capped)
  if #readyQueues > 0 then redis.call('DEL', capped) end
  for _, readyQueue in ipairs(readyQueues) do
    if redis.call('EXISTS', ready_key(readyQueue, tenant)) == 1 then
      open_ready_queue(readyQueue, tenant)
      wake_worker(readyQueue)
    end
  end
end

local function resume_agent(agent)
  if redis.call('EXISTS', tag .. 'ready-queues:' .. agent, tag .. 'ready-queues:' .. SUSPECTS .. agent) > 0 then wake_worker(agent) end
end

-- Called when a task no longer runs: tasks that waited because of a limit can be taken now.
local function free_slot(task)
  if maxTenant > 0 then resume_tenant(task.tenant) end
  if maxAgent > 0 then resume_agent(task.agent) end
end

-- The only function that ends a task. The caller must remove it from its conversation.
local function end_task(task, status, outcome)
  local wasHeld = task.stage == 'held'
  if task.commandsSent > 0 then redis.call('DEL', tag .. 'commands:' .. task.id) end
  if task.questions then end_questions(task) end
  if #outcome <= 64 then
    put(task, 'outcome', outcome)
  else
    redis.call('SET', tag .. 'outcome:' .. task.id, outcome)
  end
  put_end(task, status)
  put(task, 'session', nil)
  save(task)
  local group = status .. ':' .. task.tenant
  redis.call('ZADD', tag .. 'ended:' .. group, now, task.id)
  redis.call('ZADD', tag .. 'ended', 'LT', now, group)
  if wasHeld then free_slot(task) end
  notify('status', task, wasHeld)
end

-- Ends a task that never started.
local function end_unstarted(task, reason)
  end_task(task, 'cancelled', '{"status":"cancelled","reason":' .. reason .. '}')
end

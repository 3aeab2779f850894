-- New tasks.

-- Returns whether a task or conversation of an earlier shard count is still in use in this shard.
local function task_exists(id, tenant, conversation)
  local task = redis.call('HMGET', tag .. 'task:' .. id, 'createdAt', 'endedAt')
  if task[1] and not (task[2] and task[2] + retention <= now) then return true end
  local found = redis.call('HMGET', tag .. 'conversation:' .. pair(tenant, conversation), 'changedAt', 'current', 'debouncing')
  return found[1] and (found[2] or found[3] or found[1] + conversationRetention > now)
end

-- Reads: the task, the conversation. Returns 'here' or 'gone'.
function OPERATIONS.exists(args)
  local id, tenant, conversation = unpack(args, 5, 7)
  return task_exists(id, tenant, conversation) and 'here' or 'gone'
end

-- Returns the receipt for the creator of a task.
local function to_receipt(task)
  local superseded = {}
  for id in string.gmatch(task.superseded or '', '%S+') do superseded[#superseded + 1] = id end
  return { 'created', record(task), superseded, task.steered or false }
end

-- A small input is kept with the task, and readers know its title. A long title has a separate key.
local function store_input(task, input, title, context, isKept)
  if context ~= '' then
    put(task, 'context', '1')
    redis.call('SET', tag .. 'context:' .. task.id, context)
  end
  if #input <= 64 and not task.inputOwner and isKept then
    put(task, 'input', input)
    return
  end
  redis.call('RPUSH', tag .. 'inputs:' .. (task.inputOwner or task.id), input)
  if title == '' then return end
  if #title <= 64 then
    put(task, 'title', title)
  else
    put(task, 'title', '')
    redis.call('SET', tag .. 'title:' .. task.id, title)
  end
end

-- Creates a task and admits it to its conversation, if it has one.
-- Reads: the task, the count of its queue, its conversation and the tasks in it. Writes: the task, its indexes, its
-- conversation, tasks that it replaces or joins; removes some records past their retention.
-- Returns what happened and the task; 'new' means that the caller knows the rest.
function OPERATIONS.create(args)
  local id, tenant, agent, input, nonce, maxReady, conversation, key, worker, priority, notBefore, policy, debounceMs,
    isOfBefore, deadline, title, context, traceparent, startedBy, keepsQuestions = unpack(args, 5, 24)
  priority, debounceMs = tonumber(priority), tonumber(debounceMs)
  purge_some(LIMITS.maxPurged)
  if conversation ~= '' then purge_conversations(LIMITS.maxPurged) end
  local existing, isHidden = load(id)
  if existing then
    -- Without a key the id is derived from the nonce, so it is the same request.
    if existing.key and existing.nonce ~= nonce then return { 'duplicate', record(existing) } end
    return to_receipt(existing)
  end
  -- A name that is no longer in use here starts in its new shard.
  if isOfBefore == '1' and not task_exists(id, tenant, conversation) then return { 'gone' } end
  local ready = redis.call('ZCARD', ready_key(agent, tenant))
  if ready >= tonumber(maxReady) then return { 'full', 'tasks', maxReady } end
  if isHidden then purge(id) end
  local task = new_task(id)
  put(task, 'tenant', tenant)
  put(task, 'agent', agent)
  put_create(task)
  if conversation ~= '' then put(task, 'conversation', conversation) end
  if key ~= '' then
    put(task, 'key', key)
    put(task, 'nonce', nonce)
  end
  if worker ~= '' then put(task, 'worker', worker) end
  if priority ~= 0 then put(task, 'priority', priority) end
  if notBefore ~= '' then put(task, 'notBefore', tonumber(notBefore)) end
  if deadline ~= '' then put(task, 'deadline', tonumber(deadline)) end
  if traceparent ~= '' then put(task, 'traceparent', traceparent) end
  if startedBy ~= '' then put(task, 'startedBy', startedBy) end
  if keepsQuestions ~= '' then put(task, 'keepsQuestions', keepsQuestions) end
  local isKept = debounceMs == 0 and policy ~= 'merge'

  if conversation == '' then
    store_input(task, input, title, context, isKept)
    promote(task, ready > 0)
    notify('status', task)
    local background = find_background(key)
    if background then redis.call('ZADD', tag .. 'background:' .. pair(tenant, background), now, id) end
    return { 'new', tostring(now), task.stage, tostring(task.stageAt) }
  end

  local own = task_conversation(task)
  if own.historyBytes > SIZES.historyBytes then return { 'full', 'history', tostring(SIZES.historyBytes) } end
  -- Check this before joining: a rejected message must not take the accepted ones that are held back with it.
  if policy == 'reject' and debounceMs == 0 and own.current then return { 'rejected' } end
  local held = own.debouncing and load(own.debouncing)
  if held and read_context(held) ~= context then
    -- Messages of different contexts are never merged: those that are held back come first.
    admit_debounced(held)
    held = nil
  end
  if held and redis.call('LLEN', tag .. 'inputs:' .. (held.inputOwner or held.id)) >= LIMITS.maxDebounced then
    return { 'full', 'tasks', tostring(LIMITS.maxDebounced) }
  end
  if debounceMs == 0 and policy ~= 'replace' and #own.waiting >= LIMITS.maxQueued then
    return { 'full', 'queue', tostring(LIMITS.maxQueued) }
  end
  if held then
    end_merged(held, task)
    own.debouncing = nil
    save_conversation(own)
  end
  store_input(task, input, title, context, isKept)
  if debounceMs > 0 then
    put(task, 'policy', policy)
    delay_until(task, now + debounceMs)
    own.debouncing = id
    save_conversation(own)
    notify('status', task)
  elseif not admit(task, policy) then
    redis.call('DEL', tag .. 'title:' .. id, tag .. 'context:' .. id)
    if not held then redis.call('DEL', tag .. 'inputs:' .. id) end
    return { 'rejected' }
  end
  redis.call('ZADD', tag .. 'conversation-tasks:' .. own.name, now, id)
  return to_receipt(task)
end

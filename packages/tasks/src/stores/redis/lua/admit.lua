-- Admits a task to its conversation: it is next, waits, is passed to the current task as a message, or is rejected.

-- Passes the message to the current task; returns which waiting tasks are such messages.
local function steer(current, task)
  local key, earlier = tag .. 'commands:' .. current.id, {}
  if current.commandsSent > 0 then
    for _, command in ipairs(redis.call('HVALS', key)) do
      local steered = string.match(command, '^([^\n]*)\n')
      if steered ~= '' then earlier[steered] = true end
    end
  end
  local inputs = input_owner(task)
  local number = current.commandsSent + 1
  local command = '{"type":"steer","message":' .. inputs[#inputs] .. ',"task":"' .. task.id .. '"}'
  redis.call('HSET', key, number, task.id .. '\n' .. command)
  put(current, 'commandsSent', number)
  send_order(current, 'command')
  return earlier
end

local function enqueue(task, conversation, waiting)
  put_queue(task)
  save(task)
  save_conversation(conversation, waiting)
  notify('status', task)
end

local function replace(task, conversation, current)
  local reason, superseded = to_reason('superseded', 'a newer message arrived'), {}
  for _, id in ipairs(conversation.waiting) do
    end_unstarted(load(id), reason)
    superseded[#superseded + 1] = id
  end
  superseded[#superseded + 1] = current.id
  put(task, 'superseded', table.concat(superseded, ' '))
  if has_started(current) then
    order_stop(current, {
      level = GRACEFUL.level, abortMs = GRACEFUL.abortMs, killMs = GRACEFUL.killMs, undo = false, reason = reason,
    })
    enqueue(task, conversation, { task.id })
    return
  end
  end_unstarted(current, reason)
  conversation.current = task.id
  save_conversation(conversation, #conversation.waiting > 0 and {} or nil)
  promote(task)
  notify('status', task)
end

-- Ends a task whose messages a newer one takes over. They are passed on, not copied.
local function end_merged(task, newer)
  local owner = task.inputOwner
  if not owner then
    -- Not its id: that belongs to another task once this one is removed and its key is used again.
    owner = 'passed-' .. redis.call('HINCRBY', tag .. 'domain', 'tick', 1)
    if task.input then
      redis.call('RPUSH', tag .. 'inputs:' .. owner, task.input)
    else
      redis.call('RENAME', tag .. 'inputs:' .. task.id, tag .. 'inputs:' .. owner)
    end
  end
  put(newer, 'inputOwner', owner)
  put(task, 'inputOwner', '')
  end_unstarted(task, to_reason('merged', 'taken over by ' .. newer.id))
end

-- Merges a task with the last one that waits. Returns whether that was possible.
local function merge(task, conversation)
  local waiting = without(conversation.waiting, '')
  local last = waiting[1] and load(waiting[#waiting])
  -- A message that was passed to the current task may be read there.
  if not last or last.steered or last.agent ~= task.agent or read_context(last) ~= read_context(task) then return false end
  local inputs, own = input_owner(task), task.inputOwner or task.id
  local count = last.input and 1 or redis.call('LLEN', tag .. 'inputs:' .. (last.inputOwner or last.id))
  if count + #inputs > LIMITS.maxDebounced then return false end
  end_merged(last, task)
  for _, input in ipairs(inputs) do redis.call('RPUSH', tag .. 'inputs:' .. task.inputOwner, input) end
  redis.call('DEL', tag .. 'inputs:' .. own)
  waiting[#waiting] = task.id
  enqueue(task, conversation, waiting)
  return true
end

-- Returns whether the task was admitted; if not, nothing was written.
local function admit(task, policy)
  local conversation = task_conversation(task)
  local current = conversation.current and load(conversation.current)
  local admission = ADMISSION[policy][current and current.status or 'none']
  if admission == 'start' then
    conversation.current = task.id
    save_conversation(conversation)
    promote(task)
    notify('status', task)
    return true
  end
  if admission == 'replace' then
    replace(task, conversation, current)
    return true
  end
  local waiting = conversation.waiting
  if admission == 'reject' or #waiting >= LIMITS.maxQueued then return false end
  local isKeeping = task.keepsQuestions and question_counts(current) > 0
  local isSteered = admission == 'steer' and not isKeeping and read_context(current) == read_context(task)
    and (current.commandsSent == 0 or redis.call('HLEN', tag .. 'commands:' .. current.id) < LIMITS.maxCommands)
  -- The user wrote instead of answering. A task that starts later is not a message of now.
  local isNow = (task.notBefore or 0) <= now
  if isNow and not isKeeping and close_open(current, 'withdrawn') and not isSteered then send_order(current, 'command') end
  if admission == 'merge' and merge(task, conversation) then return true end
  if not isSteered then
    local all = without(waiting, '')
    all[#all + 1] = task.id
    enqueue(task, conversation, all)
    return true
  end
  local earlier, ahead, behind = steer(current, task), {}, {}
  for _, id in ipairs(waiting) do
    if earlier[id] then ahead[#ahead + 1] = id else behind[#behind + 1] = id end
  end
  ahead[#ahead + 1] = task.id
  for _, id in ipairs(behind) do ahead[#ahead + 1] = id end
  put(task, 'steered', current.id)
  enqueue(task, conversation, ahead)
  return true
end

-- Applies the policy when the time to wait for more messages is over.
local function admit_debounced(task)
  local conversation, policy = task_conversation(task), task.policy
  conversation.debouncing = nil
  save_conversation(conversation)
  if admit(task, policy) then return end
  end_unstarted(task, to_reason('rejected', 'another task of the conversation was under way'))
end

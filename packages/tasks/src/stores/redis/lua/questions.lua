-- What tasks ask. A question is a text of lines, so that users' text is never parsed here. Those that are not closed are in one
-- hash of their task, the closed ones in another. The task has the numbers of those that are open and of those that its worker
-- must act on, and when the first open one expires.
-- The numbers of its lines. The third is when it was asked, the eighth what.
local LINE = { state = 1, why = 2, expiresAt = 4, closedAt = 5, answeredAt = 6, nonce = 7, answer = 9 }

local function to_lines(text)
  local lines = {}
  for line in string.gmatch(text .. '\n', '([^\n]*)\n') do lines[#lines + 1] = line end
  return lines
end

local function live_key(task)
  return tag .. 'questions:' .. task.id
end

local function closed_key(task)
  return tag .. 'closed-questions:' .. task.id
end

-- Returns the questions of a task that are not closed, by their ids.
local function live_questions(task)
  local live, flat = {}, redis.call('HGETALL', live_key(task))
  for i = 1, #flat, 2 do live[flat[i]] = to_lines(flat[i + 1]) end
  return live
end

-- Changes the state of a question of `live`, and writes it.
local function change_question(task, live, id, state, why)
  local question = live[id]
  if question[LINE.state] == 'open' then redis.call('ZREM', tag .. 'open-questions:' .. task.tenant, id) end
  question[LINE.state] = state
  if why and question[LINE.why] == '' then question[LINE.why], question[LINE.closedAt] = why, now end
  if state == 'closed' then
    live[id] = nil
    redis.call('HDEL', live_key(task), id)
    redis.call('HSET', closed_key(task), id, table.concat(question, '\n'))
  else
    redis.call('HSET', live_key(task), id, table.concat(question, '\n'))
  end
end

-- Writes to the task what its questions are now. The caller saves it.
local function count_questions(task, live)
  local open, pending, expiresAt = 0, 0, nil
  for _, question in pairs(live) do
    if question[LINE.state] == 'open' then
      open = open + 1
      local at = tonumber(question[LINE.expiresAt])
      if at and (not expiresAt or at < expiresAt) then expiresAt = at end
    else
      pending = pending + 1
    end
  end
  put(task, 'questions', open .. ' ' .. pending .. ' ' .. (expiresAt or '-'))
end

-- Returns how many questions are open, and on how many its worker must act.
local function question_counts(task)
  local open, pending = string.match(task.questions or '0 0', '^(%d+) (%d+)')
  return tonumber(open), tonumber(pending)
end

-- Closes open questions; returns whether there were any. The caller saves the task.
local function close_open(task, why)
  if question_counts(task) == 0 then return false end
  local live, isChanged = live_questions(task), false
  for id, question in pairs(live) do
    local isDue = why ~= 'expired' or (tonumber(question[LINE.expiresAt]) or math.huge) <= now
    if question[LINE.state] == 'open' and isDue then
      -- Its worker settles a cancelled task: there is nothing to journal for each question.
      change_question(task, live, id, why == 'cancelled' and 'closed' or 'unread', why)
      isChanged = true
    end
  end
  if isChanged then count_questions(task, live) end
  return isChanged
end

-- Closes what is left of the questions of a task that ends. The caller saves it.
local function end_questions(task)
  local open, pending = question_counts(task)
  if open + pending == 0 then return end
  local live = live_questions(task)
  for id in pairs(live) do change_question(task, live, id, 'closed', 'ended') end
  count_questions(task, live)
end

-- The state that a question must have when its worker closes it.
local CLOSED_FROM = { answered = 'answered', outdated = 'answered', journaled = 'unread', withdrawn = 'open' }

-- Asks and closes the questions of a batch: three arguments each, from `first` to `last`. A question to ask has a third one; the
-- second is when it expires, or why it is closed. Returns why nothing was written.
local function apply_questions(task, args, first, last)
  if first > last then return nil end
  if task.status ~= 'running' then return 'stopping' end
  local live, asked = live_questions(task), 0
  for i = first, last, 3 do
    local id, why, question = args[i], args[i + 1], live[args[i]]
    if args[i + 2] ~= '' then
      if question or redis.call('HEXISTS', closed_key(task), id) == 1 then return 'changed' end
      asked = asked + 1
    elseif not question or question[LINE.state] ~= CLOSED_FROM[why] then
      return 'changed'
    end
  end
  if question_counts(task) + asked > LIMITS.maxOpenQuestions then return 'full' end
  for i = first, last, 3 do
    local id, why, about = args[i], args[i + 1], args[i + 2]
    if about == '' then
      change_question(task, live, id, 'closed', why)
    else
      local question = { 'open', '', tostring(now), why == '' and '' or tostring(now + why), '', '', '', about, '' }
      live[id] = question
      redis.call('HSET', live_key(task), id, table.concat(question, '\n'))
      redis.call('ZADD', tag .. 'open-questions:' .. task.tenant, now, id)
    end
  end
  count_questions(task, live)
  return nil, asked
end

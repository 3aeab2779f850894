-- Answers to questions, and questions that expire.

-- Reads: the task, the question. Writes: the question, the task, its order. Returns the answer and when it was given, or the
-- question.
function OPERATIONS.answer(args)
  local id, tenant, question, nonce, text = unpack(args, 5, 9)
  local task = load(id)
  if not task or task.tenant ~= tenant or not task.questions then return { 'not-found' } end
  local found = redis.call('HGET', live_key(task), question) or redis.call('HGET', closed_key(task), question)
  if not found then return { 'not-found' } end
  local lines = to_lines(found)
  -- Check this first: since the first request, the question may have been closed and the task may have ended.
  if lines[LINE.nonce] == nonce then return { 'accepted', lines[LINE.answeredAt] } end
  if lines[LINE.state] ~= 'open' then return { 'too-late', found } end
  local live = live_questions(task)
  lines = live[question]
  lines[LINE.answeredAt], lines[LINE.nonce], lines[LINE.answer] = tostring(now), nonce, text
  change_question(task, live, question, 'answered')
  count_questions(task, live)
  send_order(task, 'command')
  return { 'accepted', tostring(now) }
end

local function overdue_stop()
  return {
    level = GRACEFUL.level, abortMs = GRACEFUL.abortMs, killMs = GRACEFUL.killMs, undo = false,
    reason = to_reason(OVERDUE.kind, OVERDUE.message),
  }
end

-- Closes questions that were not answered in time, and cancels parked tasks at their deadline.
local function expire_questions(limit)
  for _ = 1, limit do
    local expired = first_expired()
    if not expired then return end
    local task = load(expired)
    close_open(task, 'expired')
    if task.stage == 'parked' and task.deadline and task.deadline <= now then
      cancel_task(task, overdue_stop())
    else
      send_order(task, 'command')
    end
  end
end

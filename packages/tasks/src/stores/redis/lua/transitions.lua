-- Written by `npm run rules` from rules/transitions.ts.
local function put_create(task)
  put(task, 'status', 'init'); put(task, 'createdAt', now)
end
local function put_hold(task, session, claim, worker)
  put(task, 'status', STATUS_AFTER.claim[task.status]); put(task, 'stage', 'held'); put(task, 'epoch', task.epoch + 1)
  put(task, 'attempts', task.attempts + 1); put(task, 'session', session); put(task, 'claim', claim); put(task, 'worker', worker)
  put(task, 'startedAt', task.startedAt or now); put(task, 'policy', nil); put(task, 'released', nil)
  put(task, 'hasPendingOrders', task.orderNumber > 0 and '1' or nil)
end
local function put_release(task, released)
  put(task, 'status', STATUS_AFTER.release[task.status]); put(task, 'epoch', task.epoch + 1)
  put(task, 'attempts', math.max(0, task.attempts - 1)); put(task, 'released', released); put(task, 'session', nil); put(task, 'claim', nil)
  put(task, 'worker', nil); put(task, 'hasPendingOrders', nil)
end
local function put_park(task, released)
  put(task, 'stage', 'parked'); put(task, 'epoch', task.epoch + 1); put(task, 'attempts', math.max(0, task.attempts - 1))
  put(task, 'released', released); put(task, 'session', nil); put(task, 'claim', nil); put(task, 'worker', nil)
  put(task, 'hasPendingOrders', nil)
end
local function put_wake(task)
  put(task, 'status', STATUS_AFTER.release[task.status])
end
local function put_reclaim(task, charges, isCharged, lostClaim)
  put(task, 'status', STATUS_AFTER.release[task.status]); put(task, 'epoch', task.epoch + 1); put(task, 'crashes', task.crashes + 1)
  put(task, 'charges', charges); put(task, 'isCharged', isCharged); put(task, 'lostClaim', lostClaim); put(task, 'session', nil)
  put(task, 'claim', nil); put(task, 'worker', nil); put(task, 'hasPendingOrders', nil)
end
local function put_end(task, status)
  put(task, 'status', status); put(task, 'endedAt', now); put(task, 'stage', nil); put(task, 'stageAt', nil); put(task, 'policy', nil)
  put(task, 'hasPendingOrders', nil); put(task, 'lostClaim', nil)
end
local function put_order(task)
  put(task, 'orderNumber', task.orderNumber + 1); put(task, 'hasPendingOrders', task.stage == 'held' and '1' or nil)
end
local function put_ready(task)
  put(task, 'stage', 'ready'); put(task, 'stageAt', now); put(task, 'policy', nil)
end
local function put_delay(task, stageAt)
  put(task, 'stage', 'delayed'); put(task, 'stageAt', stageAt)
end
local function put_queue(task)
  put(task, 'stage', 'queued'); put(task, 'stageAt', nil); put(task, 'policy', nil)
end

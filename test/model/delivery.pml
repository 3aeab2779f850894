/*
 * The delivery of tasks to workers, as packages/tasks/src/operations does it, for the model checker Spin. Two tasks,
 * W workers, two cancels, one sweeper, and faults from a budget of F.
 *
 * Each move of the store is one step. Requests and answers of takes travel; a request may arrive late, an answer may be
 * lost. A worker may crash, be stopped and go on, or die for good. Time is abstract: a session may run out whenever its worker
 * does not beat for it, and otherwise for one fault. `status.h` is made from STATUS_TABLE (check.ts).
 *
 * Checked in every state: see `Monitor` and the assertions. And whenever nothing is left to do, every task has ended.
 * `BUG_…` plants an error. Not modelled: the most crashes of a task, tenants, ready queues, conversations, limits, `later`, grace, journals.
 */
#include "status.h"
#ifndef W
#define W 2
#endif
#ifndef F
#define F 1
#endif
#ifndef ROOM_OF_A_WORKER
#define ROOM_OF_A_WORKER 2
#endif
#ifndef CANCELS
#define CANCELS 2
#endif
#ifndef RELEASES
#define RELEASES 1
#endif
#ifndef CLAIMS
#define CLAIMS 1
#endif
/* From this many attempts on a task is a suspect when it is taken; so many charges fail it. Smaller than in the stores. */
#ifndef SUSPECT
#define SUSPECT 1
#endif
#define MAX_CHARGES 1
#define T 2
/* The sessions of a worker are w+1, w+1+W, w+1+2W, … */
#define LIVES 6
#define SESSIONS (1 + W * LIVES)
#define WORKER_OF(s) (((s) - 1) % W)

#define IS_OPEN(t) (status[t] == INIT || status[t] == RUNNING || status[t] == CANCELLING)
#define IS_FINAL(t) (status[t] == SUCCESS || status[t] == FAILED || status[t] == CANCELLED)
#define IS_HELD(t) (holder[t] != 0)
#define AT(w, t) ((w) * T + (t))
/* A suspect's workers may have crashed because of it. A session holds one at most. */
#define IS_SUSPECT(t) (status[t] != CANCELLING && attempts[t] >= SUSPECT)
#define HOLDS_AS_SUSPECT(s, t) (suspect[s] == (t) + 1 && holder[t] == (s) && attempts[t] > SUSPECT)
#ifdef BUG_SUSPECTS_TOGETHER
#define CAN_HOLD(s, t) ready[t]
#else
#define CAN_HOLD(s, t) (ready[t] && !(IS_SUSPECT(t) && (HOLDS_AS_SUSPECT(s, 0) || HOLDS_AS_SUSPECT(s, 1))))
#endif
#define COUNT_HELD(s) ((holder[0] == (s)) + (holder[1] == (s)))

/* A session. */
#define UNUSED 0
#define ALIVE 1
#define OVER 2
/* What a take answers. */
#define TAKEN 1
#define REPEAT 2
#define GONE 3
#define STALE 4
/* A worker. */
#define UP 0
#define STOPPED 1
#define DEAD 2

/* The store. */
byte status[T], epoch[T], holder[T], claimed[T], ordered[T], attempts[T], charges[T], lost[T];
bool told[T], ready[T], begun[T], charged[T];
byte session[SESSIONS], takeNumber[SESSIONS], took[SESSIONS], suspect[SESSIONS];
bool parked[W];

/* The workers: their session, the number of their next take, and of each task the epoch (0: not at work) and the last order. */
byte state[W], sid[W], number[W], known[W * T], heard[W * T], claiming[W];
bool asking[W], wanted[W], doubtful[W], shouldReconcile[W];
/* An answer to a take that is under way. */
byte answer[W], answered[W], answeredEpoch[W * T], answeredOrder[W * T];
/* One request that arrives late. */
byte lateKind, lateWorker, lateSession, lateNumber, lateLimit, lateTask, lateEpoch, lateRight;

byte faults = F, cancels = CANCELS, releases = RELEASES, claims = CLAIMS;

/* What only the checker knows: which right to write is the latest, who believes to have which, how often a task ended, whether
   a cancel was accepted, the order that the present holder confirmed, which sessions lost a task to a sweep, and how often a
   task was taken away since its last progress, without those times when its worker turned out to live. */
byte right[T], rightOf[W * T], answeredRight[W * T], ends[T], confirmed[T], losses[T];
bool accepted[T], swept[SESSIONS];

#define COUNT_KNOWN(w) ((known[AT(w, 0)] != 0) + (known[AT(w, 1)] != 0))
#define ROOM(w) (ROOM_OF_A_WORKER - COUNT_KNOWN(w) - (claiming[w] != 0))

/* Never takes a step unless a state breaks one of these. */
proctype Monitor(byte t) {
end:
  do
  :: atomic {
       /* A task that lives is ready or held, never both, never neither. */
       (IS_OPEN(t) && ready[t] + IS_HELD(t) != 1) || (!IS_OPEN(t) && (ready[t] || IS_HELD(t))) ||
       /* It ends once. */
       ends[t] != IS_FINAL(t) ||
       /* A cancel that was accepted is a cancel. */
       (accepted[t] && status[t] != CANCELLING && status[t] != CANCELLED) ||
       /* Who holds a task is told of an order until they confirmed it. */
       (IS_HELD(t) && told[t] != (ordered[t] != confirmed[t])) ||
       /* Two tasks that may each be to blame are never held together. */
       (IS_HELD(t) && holder[0] == holder[1] && status[0] == RUNNING && status[1] == RUNNING && attempts[0] > SUSPECT
         && attempts[1] > SUSPECT) ||
       /* A worker that lives is no crash. */
       (IS_OPEN(t) && charges[t] > losses[t]) -> assert(false) }
  od
}

/* ---- moves of the store ---- */

inline end_task(t, to) {
  assert(!IS_FINAL(t) && to != REFUSED);
  status[t] = to; ends[t]++; told[t] = false; ready[t] = false; holder[t] = 0; confirmed[t] = 0;
  lost[t] = 0; charged[t] = false
}

/* Rings one worker that waits; the ring may be lost. */
inline ring() {
  if
  :: parked[0] -> parked[0] = false; if :: state[0] != DEAD -> wanted[0] = true :: faults > 0 -> faults-- :: state[0] == DEAD fi
  :: parked[1] -> parked[1] = false; if :: state[1] != DEAD -> wanted[1] = true :: faults > 0 -> faults-- :: state[1] == DEAD fi
#if W > 2
  :: parked[2] -> parked[2] = false; if :: state[2] != DEAD -> wanted[2] = true :: faults > 0 -> faults-- :: state[2] == DEAD fi
  :: !parked[0] && !parked[1] && !parked[2]
#else
  :: !parked[0] && !parked[1]
#endif
  fi
}

inline make_ready(t) { ready[t] = true; ring() }

inline hold(t, s, nonce) {
  if :: IS_SUSPECT(t) -> suspect[s] = t + 1 :: else fi;
  ready[t] = false; status[t] = AFTER_CLAIM(status[t]);
  assert(status[t] != REFUSED);
#ifndef BUG_EPOCH_NOT_RAISED
  epoch[t]++;
#endif
  attempts[t]++; holder[t] = s; claimed[t] = nonce; right[t]++; confirmed[t] = 0;
#ifndef BUG_OLD_ORDERS_NOT_TOLD
  told[t] = (ordered[t] > 0);
#else
  told[t] = false;
#endif
}

/* What a session held is held no more. */
inline unhold(t) {
  holder[t] = 0; claimed[t] = 0; told[t] = false; right[t]++; confirmed[t] = 0;
#ifndef BUG_FREED_WITHOUT_EPOCH
  epoch[t]++
#endif
}

#ifdef BUG_REPEAT_HANDS_OUT_CLAIMED
#define IS_OF_TAKE(s, t, n) (holder[t] == s)
#else
/* Not what the session has claimed by its id since. */
#define IS_OF_TAKE(s, t, n) (holder[t] == s && claimed[t] == n)
#endif

/* A task whose workers kept crashing fails instead of being held. */
#ifdef BUG_FAILS_CANCELLING
#define FAILS(t) (charges[t] >= MAX_CHARGES)
inline fail_lost(t) { end_task(t, FAILED) }
#else
#define FAILS(t) (IS_SUSPECT(t) && charges[t] >= MAX_CHARGES)
inline fail_lost(t) { end_task(t, AFTER_FAILED(AFTER_CLAIM(status[t]))) }
#endif

inline take(w_, s, n, limit) {
  got = 0;
  if
  :: session[s] == OVER ->
#ifdef BUG_SESSION_REUSED
     if :: n == 1 -> code = TAKEN :: else -> code = GONE fi
#else
     code = GONE
#endif
  :: session[s] != OVER && takeNumber[s] == 0 && n > 1 -> code = GONE
  :: session[s] != OVER && n < takeNumber[s] -> code = STALE
  :: session[s] != OVER && n > takeNumber[s] + 1 && takeNumber[s] > 0 -> code = GONE
#ifdef BUG_TAKE_NOT_REPEATED
  :: session[s] == ALIVE && n == takeNumber[s] -> code = TAKEN
#else
  :: session[s] == ALIVE && n == takeNumber[s] -> code = REPEAT;
     for (x : 0 .. T - 1) { if :: ((took[s] >> x) & 1) && IS_OF_TAKE(s, x, n) -> got = got | (1 << x) :: else fi }
#endif
  :: session[s] != OVER && n == takeNumber[s] + 1 -> code = TAKEN
  fi;
  if
  :: code == TAKEN ->
     left = limit;
     for (x : 0 .. T - 1) {
       if
       :: CAN_HOLD(s, x) && left > 0 ->
          if :: FAILS(x) -> fail_lost(x) :: else -> hold(x, s, n); got = got | (1 << x); left-- fi
       :: else
       fi
     }
     if :: got != 0 -> assert(session[s] != OVER); session[s] = ALIVE; takeNumber[s] = n; took[s] = got :: else fi;
#ifdef BUG_NOT_PARKED
     parked[w_] = false
#else
     parked[w_] = (left > 0)
#endif
  :: else
  fi;
  x = 0; left = 0
}

#ifdef BUG_SESSION_NOT_COMPARED
#define IS_OWN(s, t, e) (epoch[t] == (e) && (status[t] == RUNNING || status[t] == CANCELLING))
#else
#define IS_OWN(s, t, e) (holder[t] == (s) && epoch[t] == (e) && (status[t] == RUNNING || status[t] == CANCELLING))
#endif

/* `r` is the right that the writer believes to have. */
inline finish(s, t, e, r, isGood) {
  if
  :: IS_OWN(s, t, e) ->
     assert(right[t] == r);
#ifdef BUG_BLIND_END
     if :: isGood -> end_task(t, SUCCESS) :: else -> end_task(t, FAILED) fi
#else
     if :: isGood -> end_task(t, AFTER_SUCCESS(status[t])) :: else -> end_task(t, AFTER_FAILED(status[t])) fi
#endif
  :: else
  fi
}

inline release(s, t, e, r) {
  if
  :: IS_OWN(s, t, e) -> assert(right[t] == r);
     unhold(t); if :: attempts[t] > 0 -> attempts[t]-- :: else fi; status[t] = AFTER_RELEASE(status[t]); make_ready(t)
  :: else
  fi
}

/* A worker whose session was taken away lives, and hands back what it had: the crash was none. */
inline release_late(w, t) {
  if
  :: known[AT(w, t)] != 0 && lost[t] != 0 && lost[t] == rightOf[AT(w, t)] ->
     if :: attempts[t] > IS_HELD(t) -> attempts[t]-- :: else fi;
#ifndef BUG_LATE_RELEASE_KEEPS_CHARGE
     if :: charged[t] && charges[t] > 0 -> charges[t]-- :: else fi;
#endif
     if :: losses[t] > 0 -> losses[t]-- :: else fi;
     charged[t] = false; lost[t] = 0;
     if :: ready[t] -> ring() :: else fi
  :: else
  fi
}

inline give_up(w) { release_late(w, 0); release_late(w, 1); begin_session(w) }

/* Frees one task of a session that ran out. In the same step the session is over: no beat counts from here on. */
inline sweep_one(s) {
#ifndef BUG_OVER_AFTER_FREEING
  session[s] = OVER;
#endif
  if :: holder[0] == s -> t = 0 :: holder[0] != s && holder[1] == s -> t = 1 :: else -> t = T fi;
  if
  :: t < T -> swept[s] = true;
#ifdef BUG_NEIGHBOURS_CHARGED
     charged[t] = (status[t] == RUNNING);
#else
     charged[t] = (status[t] == RUNNING && HOLDS_AS_SUSPECT(s, t));
#endif
     assert(!charged[t] || attempts[t] > SUSPECT);
     if :: charged[t] -> charges[t]++ :: else fi;
     losses[t]++; lost[t] = right[t]; unhold(t);
     status[t] = AFTER_RELEASE(status[t]); make_ready(t)
  :: else
  fi;
#ifdef BUG_OVER_AFTER_FREEING
  if :: COUNT_HELD(s) == 0 -> session[s] = OVER :: else fi;
#endif
  t = 0
}

#ifdef BUG_ANY_ORDER_CONFIRMED
#define CONFIRMS(w, t) (told[t] && holder[t] == sid[w] && known[AT(w, t)] == epoch[t] && heard[AT(w, t)] > 0)
#else
#ifdef BUG_FORMER_HOLDER_CONFIRMS
#define CONFIRMS(w, t) (told[t] && known[AT(w, t)] != 0 && heard[AT(w, t)] == ordered[t])
#else
#define CONFIRMS(w, t) (told[t] && holder[t] == sid[w] && known[AT(w, t)] == epoch[t] && heard[AT(w, t)] == ordered[t])
#endif
#endif

inline heartbeat(w) {
  if
  :: session[sid[w]] != ALIVE -> give_up(w)
  :: else ->
     assert(!swept[sid[w]]);
     for (x : 0 .. T - 1) {
       if
       :: CONFIRMS(w, x) -> told[x] = false;
          if :: holder[x] == sid[w] && known[AT(w, x)] == epoch[x] -> confirmed[x] = heard[AT(w, x)] :: else fi
       :: else
       fi;
       if :: told[x] && holder[x] == sid[w] && known[AT(w, x)] == epoch[x] -> heard[AT(w, x)] = ordered[x] :: else fi
     }
     shouldReconcile[w] = (COUNT_HELD(sid[w]) != COUNT_KNOWN(w)); x = 0
  fi
}

/* ---- workers ---- */

inline drop(w, t) { known[AT(w, t)] = 0; heard[AT(w, t)] = 0; rightOf[AT(w, t)] = 0 }

inline forget_answer(w) {
  answer[w] = 0; answered[w] = 0;
  answeredEpoch[AT(w, 0)] = 0; answeredOrder[AT(w, 0)] = 0; answeredRight[AT(w, 0)] = 0;
  answeredEpoch[AT(w, 1)] = 0; answeredOrder[AT(w, 1)] = 0; answeredRight[AT(w, 1)] = 0
}

inline begin_session(w) {
  drop(w, 0); drop(w, 1); forget_answer(w);
  sid[w] = (sid[w] == 0 -> w + 1 : sid[w] + W);
  assert(sid[w] < SESSIONS);
  number[w] = 1; asking[w] = false; claiming[w] = 0; doubtful[w] = false; shouldReconcile[w] = false; wanted[w] = true
}

/* A task is at work, unless it is already: that must not be. */
inline start(w, t, e, o, r) {
  assert(known[AT(w, t)] == 0);
  known[AT(w, t)] = e; heard[AT(w, t)] = o; rightOf[AT(w, t)] = r
}

/* A poll that finds nothing changes nothing, so only others are steps. */
#ifdef NO_POLL
#define POLLS 0
#else
#define POLLS (CAN_HOLD(sid[w], 0) || CAN_HOLD(sid[w], 1))
#endif
#define CAN_TAKE (state[w] == UP && answer[w] == 0 && (asking[w] || (ROOM(w) > 0 && (wanted[w] || POLLS))))
#define CAN_HEAR (state[w] == UP && answer[w] != 0)
#define CAN_CLAIM(t) (state[w] == UP && claims > 0 && claiming[w] == 0 && ROOM(w) > 0 && CAN_HOLD(sid[w], t))
/* Likewise a beat that neither brings nor tells anything. */
#define TELLS(t) (told[t] && holder[t] == sid[w] && known[AT(w, t)] == epoch[t])
#define CAN_BEAT (state[w] == UP && COUNT_KNOWN(w) > 0 && (session[sid[w]] != ALIVE || TELLS(0) || TELLS(1) || CONFIRMS(w, 0) \
  || CONFIRMS(w, 1) || shouldReconcile[w] != (COUNT_HELD(sid[w]) != COUNT_KNOWN(w))))
#define KNOWS(t) (state[w] == UP && known[AT(w, t)] != 0)

inline finish_known(w, t) {
  if
  :: true -> finish(sid[w], t, known[AT(w, t)], rightOf[AT(w, t)], true); drop(w, t)
  :: true -> finish(sid[w], t, known[AT(w, t)], rightOf[AT(w, t)], false); drop(w, t)
  :: faults > 0 && lateKind == 0 -> faults--; lateKind = 2; lateSession = sid[w]; lateTask = t;
     lateEpoch = known[AT(w, t)]; lateRight = rightOf[AT(w, t)];
     /* It is asked again, or given up without knowing. */
     if :: skip :: drop(w, t); doubtful[w] = true fi
  fi
}

#ifdef BUG_ANY_CLAIM_IS_A_REPEAT
#define IS_REPEATED(w, t) (holder[t] == sid[w])
#else
#define IS_REPEATED(w, t) (holder[t] == sid[w] && claimed[t] == 100 + w)
#endif

/* Claims one task by its id. The same request is repeated while its answer is lost. */
inline claim(w, t) {
  if
  :: session[sid[w]] == OVER -> give_up(w)
  :: session[sid[w]] != OVER && CAN_HOLD(sid[w], t) && FAILS(t) -> fail_lost(t); claiming[w] = 0
  :: session[sid[w]] != OVER && IS_OPEN(t) && ((CAN_HOLD(sid[w], t) && !FAILS(t)) || (IS_HELD(t) && IS_REPEATED(w, t))) ->
     if :: !IS_HELD(t) -> hold(t, sid[w], 100 + w); session[sid[w]] = ALIVE :: else fi;
     if
     :: start(w, t, epoch[t], ordered[t], right[t]); claiming[w] = 0
     :: faults > 0 -> faults--; claiming[w] = t + 1
     fi
  :: else -> claiming[w] = 0
  fi
}

proctype Worker(byte w) {
  byte x, left, code, got;
  atomic { begin_session(w) }
end:
  do
  :: atomic { CAN_TAKE ->
       if :: doubtful[w] && COUNT_KNOWN(w) == 0 && claiming[w] == 0 && !asking[w] -> begin_session(w) :: else fi;
       asking[w] = true; wanted[w] = false;
       if
       :: take(w, sid[w], number[w], ROOM(w)); answer[w] = code; answered[w] = got;
          /* Whether to ask again at once: the take was a repeat, or all there was room for. */
          wanted[w] = (code == REPEAT || ((got & 1) + (got >> 1)) == ROOM(w));
          for (x : 0 .. T - 1) {
            if :: (got >> x) & 1 -> answeredEpoch[AT(w, x)] = epoch[x]; answeredOrder[AT(w, x)] = ordered[x];
                  answeredRight[AT(w, x)] = right[x]
               :: else fi
          }
       :: faults > 0 && lateKind == 0 -> faults--; lateKind = 1; lateWorker = w; lateSession = sid[w]; lateNumber = number[w];
          lateLimit = ROOM(w)
       fi;
       x = 0; code = 0; got = 0 }
  :: atomic { CAN_HEAR ->
       if
       :: answer[w] == GONE -> give_up(w)
       :: answer[w] == STALE -> asking[w] = false; wanted[w] = true; forget_answer(w)
       :: answer[w] == TAKEN || answer[w] == REPEAT -> asking[w] = false;
          if :: answered[w] != 0 || answer[w] == REPEAT -> number[w]++ :: else fi;
          for (x : 0 .. T - 1) {
            if :: (answered[w] >> x) & 1 ->
                  start(w, x, answeredEpoch[AT(w, x)], answeredOrder[AT(w, x)], answeredRight[AT(w, x)])
               :: else fi
          }
          forget_answer(w)
       :: faults > 0 -> faults--; forget_answer(w)  /* lost: it is asked again */
       fi;
       x = 0 }
  :: atomic { CAN_CLAIM(0) -> claims--; claim(w, 0) }
  :: atomic { CAN_CLAIM(1) -> claims--; claim(w, 1) }
  :: atomic { state[w] == UP && claiming[w] != 0 ->
       if
       :: got = claiming[w] - 1; claiming[w] = 0; claim(w, got)
       :: claiming[w] = 0; doubtful[w] = true
       fi;
       got = 0 }
  :: atomic { CAN_BEAT -> heartbeat(w) }
  :: atomic { state[w] == UP && shouldReconcile[w] && !asking[w] && claiming[w] == 0 ->
       /* Compares by name: hands back what it does not know, stops what the store does not have. */
       shouldReconcile[w] = false;
       for (x : 0 .. T - 1) {
         if
         :: holder[x] == sid[w] && known[AT(w, x)] == 0 -> release(sid[w], x, epoch[x], right[x])
         :: known[AT(w, x)] != 0 && !(holder[x] == sid[w] && epoch[x] == known[AT(w, x)]) -> drop(w, x)
         :: else
         fi
       }
       x = 0 }
  :: atomic { KNOWS(0) -> finish_known(w, 0) }
  :: atomic { KNOWS(1) -> finish_known(w, 1) }
  :: atomic { releases > 0 && KNOWS(0) -> releases--; release(sid[w], 0, known[AT(w, 0)], rightOf[AT(w, 0)]); drop(w, 0) }
  :: atomic { releases > 0 && KNOWS(1) -> releases--; release(sid[w], 1, known[AT(w, 1)], rightOf[AT(w, 1)]); drop(w, 1) }
     /* The first entry of its journal, which is progress. */
  :: atomic { KNOWS(0) && !begun[0] && IS_OWN(sid[w], 0, known[AT(w, 0)]) -> assert(right[0] == rightOf[AT(w, 0)]);
       begun[0] = true; attempts[0] = 0; charges[0] = 0; losses[0] = 0 }
  od
}

/* ---- users, the sweeper, the world ---- */

/* Tells the holder at once; that may be lost. */
inline push(t) {
  if
  :: IS_HELD(t) && sid[WORKER_OF(holder[t])] == holder[t] && known[AT(WORKER_OF(holder[t]), t)] == epoch[t] ->
     if :: heard[AT(WORKER_OF(holder[t]), t)] = ordered[t] :: skip fi
  :: else
  fi
}

inline cancel(t) {
  if
  :: IS_FINAL(t)
  :: status[t] == INIT && !begun[t] -> accepted[t] = true; end_task(t, AFTER_CANCEL(INIT))
  :: else -> accepted[t] = true; ordered[t]++;
     /* What has begun is settled, even if no worker has it at the moment. */
     status[t] = AFTER_CANCEL((status[t] == INIT -> RUNNING : status[t]));
     if
#ifdef BUG_CANCEL_NOT_TOLD
     :: IS_HELD(t) -> push(t)
#else
     :: IS_HELD(t) -> told[t] = true; push(t)
#endif
     :: else -> make_ready(t)
     fi
  fi
}

proctype Users() {
  atomic { status[0] = INIT; epoch[0] = 1; make_ready(0) }
  atomic { status[1] = INIT; epoch[1] = 1; make_ready(1) }
end:
  do
  :: atomic { cancels > 0 -> cancels--; if :: true -> cancel(0) :: true -> cancel(1) :: skip fi }
  od
}

/* A session that its worker does not beat for: it is not there, has another by now, or knows of nothing it holds. */
#define IS_UNKNOWN(s) (COUNT_KNOWN(WORKER_OF(s)) == 0 && answered[WORKER_OF(s)] == 0 && !asking[WORKER_OF(s)] && claiming[WORKER_OF(s)] == 0)
#define HAS_RUN_OUT(s) (COUNT_HELD(s) > 0 && (session[s] == OVER || state[WORKER_OF(s)] != UP || sid[WORKER_OF(s)] != s || IS_UNKNOWN(s)))
#define ANY_HAS_RUN_OUT ((holder[0] != 0 && HAS_RUN_OUT(holder[0])) || (holder[1] != 0 && HAS_RUN_OUT(holder[1])))

proctype Sweeper() {
  byte t;
  byte s;
end:
  do
  :: atomic { ANY_HAS_RUN_OUT ->
       if :: holder[0] != 0 && HAS_RUN_OUT(holder[0]) -> s = holder[0] :: else -> s = holder[1] fi;
       sweep_one(s); s = 0 }
     /* It runs out though its worker lives: beats were late. */
  :: atomic { faults > 0 && holder[0] != 0 -> faults--; s = holder[0]; sweep_one(s); s = 0 }
  :: atomic { faults > 0 && holder[1] != 0 -> faults--; s = holder[1]; sweep_one(s); s = 0 }
  od
}

inline strike(w) {
  if
  :: state[w] != DEAD -> state[w] = UP; begin_session(w)  /* a crash, and a new process */
  :: state[w] == UP -> state[w] = STOPPED
  :: w == 0 && state[w] != DEAD -> state[w] = DEAD
  :: else
  fi
}

proctype World() {
  byte x, left, code, got;
end:
  do
  :: atomic { faults > 0 -> faults--; strike(0) }
  :: atomic { faults > 0 -> faults--; strike(1) }
#if W > 2
  :: atomic { faults > 0 -> faults--; strike(2) }
  :: atomic { state[2] == STOPPED -> state[2] = UP }
#endif
  :: atomic { state[0] == STOPPED -> state[0] = UP }
  :: atomic { state[1] == STOPPED -> state[1] = UP }
  :: atomic { lateKind != 0 ->
       if
       :: lateKind == 1 -> take(lateWorker, lateSession, lateNumber, lateLimit)
       :: lateKind == 2 -> finish(lateSession, lateTask, lateEpoch, lateRight, true)
       :: skip  /* it never arrives */
       fi;
       code = 0; got = 0; lateKind = 0; lateWorker = 0; lateSession = 0; lateNumber = 0; lateLimit = 0; lateTask = 0; lateEpoch = 0;
       lateRight = 0 }
     /* Nothing is left to do. */
  :: timeout -> assert(IS_FINAL(0) && IS_FINAL(1)); break
  od
}

init {
  atomic {
    run Worker(0);
    run Worker(1);
#if W > 2
    run Worker(2);
#endif
    run Users();
    run Sweeper();
    run Monitor(0);
    run Monitor(1);
    run World()
  }
}

/*
 * Live text: words reach a reader before the journal has them, over a bus that loses, doubles, delays and reorders.
 * Units (characters of words, other events: one each) are numbered from 1 in each epoch. A journal entry covers (f, n] of its
 * epoch; a marker (m) says that the journal left them out. A frame is { epoch, claim, base, kept, position, from, to }.
 * There is no handshake: interest, then the record; the worker that learns of it appends; a gap waits for the next append.
 * EPOCHS workers, UNITS per worker, SLOTS of the bus. An old worker may crash or go on as a zombie.
 * -DFAILOVER: once, the ledger forgets the newest claim and all that followed it; the same epoch is then issued to another claim.
 * -DLIVE: nothing is lost or doubled and nobody polls; whenever all is quiet the reader shows all that was appended, and all that
 *   was said but what a frame that it could not use had. -DLIVE -DLOSS=n: n messages are lost; asserted after the next append, and
 *   at the end after one poll.
 * -DBUG_…: plants an error. -DTEXT_…: an earlier reading of the protocol, in which the model found a hole.
 */
#ifndef EPOCHS
#define EPOCHS 2
#endif
#ifndef UNITS
#define UNITS 3
#endif
#ifndef SLOTS
#define SLOTS 2
#endif
#ifdef FIRST
#define UNITS_OF(e) (e == 1 -> FIRST : UNITS)    /* the first worker says less: a smaller model */
#else
#define UNITS_OF(e) UNITS
#endif
#define MAXJ (EPOCHS * UNITS + 1)
#ifdef FAILOVER
#define HISTORIES 2    /* J[MAXJ + i]: what the lost ledger had */
#else
#define HISTORIES 1
#endif
#define MAXD (EPOCHS * UNITS + UNITS + 4)
/* A claim is (e, c): c = 1 is the second issue of an epoch. */
#define PAIR(e, c) ((e) * 2 + (c))
#define UNIT(e, c, n) (PAIR(e, c) * 8 + (n))
#define MARK(e, c, n) (128 + UNIT(e, c, n))
#define PAIRS (EPOCHS * 2 + 4)
#define FREE 0
#define FRAME 1
#define HINT 2    /* to the reader: the record changed */
#define LOOK 3    /* to the worker: somebody watches */

typedef Entry { byte e; bit c; byte f; byte n; bit m };
typedef Message { byte kind; byte e; bit c; byte b; byte k; byte p; byte f; byte t };
/* The ledger. `base`: where the journal ended when an epoch was claimed. */
Entry J[HISTORIES * MAXJ];
byte jlen, epoch = 1, base[PAIRS];
bit claim;
bool ended, byStore, interest;
Message bus[SLOTS], tmp;
bool dead[PAIRS];
/* The reader: what it shows, how much of that the journal confirmed, its cursor (with the claim of the last entry). */
byte D[MAXD], dlen, solid, pos, E, n, last;
bit C;
bool reading, closed, wantRead, again;
byte rlen, rep, wantP, wantN;
bit rcl;
bool rend;
#ifdef FAILOVER
byte olen, lost;
bool rold, synced, gone;
#define OLD rold
#define FAILED (lost > 0)
#define SYNCED (lost == 0 || synced)
#define LOST lost
#else
byte told[PAIRS];
#define OLD false
#define FAILED false
#define SYNCED true
#define LOST 0
#endif
#ifdef LIVE
/* For the checks at quiet only. */
byte said[PAIRS], kept[PAIRS];
bool dropped, quiet;
byte losses;
#ifdef COUNT
byte reads, appends = 1;
#endif
bool lostSince, polled;
#endif

/* The order of the slots says nothing: keep one of them. */
#define CODE(x) ((((((bus[x].kind * 8 + bus[x].e) * 2 + bus[x].c) * 8 + bus[x].f) * 8 + bus[x].t) * 8 + bus[x].k) * 16 + bus[x].p)
#define COPY(a, z) a.kind = z.kind; a.e = z.e; a.c = z.c; a.b = z.b; a.k = z.k; a.p = z.p; a.f = z.f; a.t = z.t
#define CLEAR(a) a.kind = 0; a.e = 0; a.c = 0; a.b = 0; a.k = 0; a.p = 0; a.f = 0; a.t = 0
inline swap(x, z) {
  if
  :: CODE(x) < CODE(z) -> COPY(tmp, bus[x]); COPY(bus[x], bus[z]); COPY(bus[z], tmp); CLEAR(tmp)
  :: else
  fi
}
inline sort() {
#if SLOTS > 2
  swap(0, 1); swap(1, 2);
#endif
  swap(0, 1)
}
inline put(kd, pe, pc, pb, pk, pp, pf, pt) {
  d_step {
    s = 0;
    do :: s < SLOTS && bus[s].kind != FREE -> s++ :: else -> break od;
    if
    :: s < SLOTS -> bus[s].kind = kd; bus[s].e = pe; bus[s].c = pc; bus[s].b = pb; bus[s].k = pk; bus[s].p = pp; bus[s].f = pf; bus[s].t = pt
    :: else
    fi; s = 0; sort()
  }
}
inline free(x) { CLEAR(bus[x]); sort() }
#define ROOM (bus[0].kind == FREE || bus[1].kind == FREE || (SLOTS > 2 && bus[SLOTS - 1].kind == FREE))
#ifdef BUG_ENDS_UNFLUSHED
#define FLUSHED true
#else
#define FLUSHED (k == u)
#endif
#ifdef LIVE
#define MAY_APPEND (must || !quiet)
#define MAY_END (FLUSHED && !quiet && SEND)
#define SEND (ROOM || !interest)
#define TO_READER(kd, pe, pc, pb, pk, pp, pf, pt) if :: interest -> put(kd, pe, pc, pb, pk, pp, pf, pt) :: else fi
#ifdef COUNT
#define APPENDED appends++; lostSince = false
#else
#define APPENDED lostSince = false
#endif
#else
#define SEND true
#define MAY_APPEND true
#define MAY_END FLUSHED
#define TO_READER(kd, pe, pc, pb, pk, pp, pf, pt) put(kd, pe, pc, pb, pk, pp, pf, pt)
#define APPENDED skip
#endif
#ifdef BUG_FENCED_BY_EPOCH_ALONE
#define MINE (epoch == e && !ended)
#else
#define MINE (epoch == e && claim == c && !ended)
#endif
#ifdef TEXT_CLAIM_SENDS_A_FRAME
#define CLAIMED FRAME
#else
#define CLAIMED HINT
#endif
/* A step of the ledger that the bus tells the reader of: in -DLIVE a hint to look at the record; without, it looks when it likes. */

proctype Worker(byte e; bit c) {
  byte u = 0, k = 0, p = base[PAIR(e, c)], flushing = 0, at = 0, s, sent = 0;
  bool writing = false;
#ifdef LIVE
  bool w = interest, named = false, must = false;
#endif
  do
  :: dead[PAIR(e, c)] -> break
#ifdef LIVE
  :: atomic { !dead[PAIR(e, c)] && !quiet && u < UNITS_OF(e) -> u++; said[PAIR(e, c)] = u; if :: !w -> sent = u :: else fi }
  :: atomic { !dead[PAIR(e, c)] && w && sent < u && ROOM -> put(FRAME, e, c, base[PAIR(e, c)], k, p, sent, u); sent = u }
  /* It learns that it is watched (again): what it said until now goes to the journal at once, what follows into frames. */
  :: atomic { !dead[PAIR(e, c)] && (bus[0].kind == LOOK && PAIR(bus[0].e, bus[0].c) == PAIR(e, c) || bus[1].kind == LOOK && PAIR(bus[1].e, bus[1].c) == PAIR(e, c)) ->
       d_step { if :: bus[0].kind == LOOK && PAIR(bus[0].e, bus[0].c) == PAIR(e, c) -> free(0) :: else -> free(1) fi };
       if :: !w -> w = true; sent = u :: else fi;
#ifndef BUG_NO_APPEND_WHEN_WATCHED
       must = (writing -> u > flushing : u > k)
#endif
     }
#else
  :: atomic { !dead[PAIR(e, c)] && u < UNITS_OF(e) -> u++ }
  /* A pulse: a frame of what was said since the last, which may be lost at once (or nobody watches). */
  :: atomic { !dead[PAIR(e, c)] && sent < u -> if :: put(FRAME, e, c, base[PAIR(e, c)], k, p, sent, u) :: skip fi; sent = u }
#endif
  :: atomic { !dead[PAIR(e, c)] && !writing && u > k && MAY_APPEND ->               /* the store: fenced, one step */
       if
#ifdef BUG_UNFENCED
       :: !ended ->
#else
       :: MINE ->
#endif
          J[jlen].e = e; J[jlen].c = c; J[jlen].f = k; J[jlen].n = u;
#ifdef TIGHT
          if :: J[jlen].m = 1 :: J[jlen].m = 0 fi;
#endif
          jlen++; flushing = u; at = jlen; writing = true;
#ifdef LIVE
          must = false; named = interest; APPENDED
#endif
       :: else -> dead[PAIR(e, c)] = true; break
       fi }
  :: atomic { !dead[PAIR(e, c)] && writing && SEND ->                 /* its answer arrives: who watches, and news of the commit */
       k = flushing; p = at; writing = false; flushing = 0; at = 0;
#ifdef LIVE
       kept[PAIR(e, c)] = k;
#ifdef BUG_ANSWER_FORGETS_THE_HINT
       if :: !named -> w = false; sent = u :: else fi;
#endif
       if
       :: named && !w -> w = true; sent = u; must = u > k
       :: else
       fi;
       if :: named -> put(FRAME, e, c, base[PAIR(e, c)], k, p, k, k) :: else fi; named = false
#else
       put(FRAME, e, c, base[PAIR(e, c)], k, p, k, k)
#endif
     }
  :: atomic { !dead[PAIR(e, c)] && !writing && MAY_END ->
          if
          :: MINE -> ended = true;
#ifdef LIVE
             TO_READER(HINT, 0, 0, 0, 0, 0, 0, 0)
#endif
          :: else
          fi; dead[PAIR(e, c)] = true; break }
  od
}

/* Workers are lost, or taken for lost; or the store ends the task without one; or the store itself is lost. */
proctype Ledger() {
  byte s;
  do
  :: atomic { epoch < EPOCHS && !ended && SEND ->
#ifdef LIVE
       dead[PAIR(epoch, claim)] = true; APPENDED;
#endif
       epoch++; claim = (epoch * 2 == LOST -> 1 : 0); base[PAIR(epoch, claim)] = jlen; run Worker(epoch, claim);
#ifdef LIVE
#ifdef TEXT_CLAIM_SENDS_A_FRAME
       TO_READER(FRAME, epoch, claim, jlen, 0, jlen, 0, 0)
#else
       TO_READER(HINT, 0, 0, 0, 0, 0, 0, 0)
#endif
#else
       put(FRAME, epoch, claim, jlen, 0, jlen, 0, 0)
#endif
     }
  :: atomic { !ended && SEND ->
#ifdef LIVE
       dead[PAIR(epoch, claim)] = true;
#endif
       byStore = true; ended = true;
#ifdef LIVE
       TO_READER(HINT, 0, 0, 0, 0, 0, 0, 0)
#endif
     }
#ifdef FAILOVER
  /* The second ledger never heard of the newest claim, nor (its table is not logged) of who is interested. */
  :: d_step { epoch > 1 && lost == 0 && !ended ->
       lost = PAIR(epoch, claim); olen = jlen; s = 0;
       do :: s < jlen -> J[MAXJ + s].e = J[s].e; J[MAXJ + s].c = J[s].c; J[MAXJ + s].f = J[s].f; J[MAXJ + s].n = J[s].n; J[MAXJ + s].m = J[s].m; s++ :: else -> break od;
       do :: jlen > base[lost] -> jlen--; J[jlen].e = 0; J[jlen].c = 0; J[jlen].f = 0; J[jlen].n = 0; J[jlen].m = 0 :: else -> break od;
       s = 0; epoch--; claim = 0; rold = reading; gone = interest; interest = false }
#endif
#ifdef LIVE
  :: atomic { !quiet -> quiet = true; break }
#else
  :: break
#endif
  od
}

inline take_back() {
  if
  :: dlen > solid ->
#ifndef FAILOVER
     /* Once for each epoch, and only if its worker was lost. */
     assert(told[PAIR(E, C)] == 0 && (epoch > E || byStore)); told[PAIR(E, C)]++;
#endif
     do :: dlen > solid -> dlen--; D[dlen] = 0 :: else -> break od
  :: else
  fi
}

/* Shows the units up to `to` of the present epoch. */
inline show_to(ae, ac, to) {
  do :: n < to -> n++; assert(dlen < MAXD); D[dlen] = UNIT(ae, ac, n); dlen++ :: else -> break od
}
/* The journal has the present epoch up to `k`. */
inline confirm(upto) {
  if :: dlen - (n - (upto)) > solid -> solid = dlen - (n - (upto)) :: else fi
}
/* A read is asked for, up to a position; what is asked for during a read is looked at again after it. */
#ifdef BUG_FORGETS_WHILE_READING
#define ASK(p) if :: !reading && p > wantP -> wantP = p :: else fi
#define NEWER(ee) if :: !reading && ee > wantN -> wantN = ee :: else fi
#else
#define NEWER(ee) if :: ee > wantN -> wantN = ee :: else fi
#define ASK(p) if :: p > wantP -> wantP = p :: else fi
#endif
#ifdef LIVE
#define UNUSED(x) if :: bus[x].t > n -> dropped = true :: else fi
#define UNKNOWN(x) if :: bus[x].t > 0 -> dropped = true :: else fi
#else
#define UNUSED(x) skip
#define UNKNOWN(x) skip
#endif

inline on_frame(x) {
  if
  :: closed -> skip
#ifdef BUG_NO_EPOCH_CHECK
  :: !closed -> if :: E == 0 -> E = bus[x].e :: else fi; on_same(x)
#else
  :: !closed && bus[x].e < E -> skip
  :: !closed && bus[x].e > E ->
#ifdef TEXT_EPOCH_FROM_FRAMES
     if
#ifndef BUG_NO_BASE
     :: pos < bus[x].b -> ASK(bus[x].p); UNKNOWN(x)
     :: pos >= bus[x].b ->
#else
     :: true ->
#endif
        take_back(); E = bus[x].e; C = bus[x].c; n = 0; solid = dlen; on_same(x)
     fi
#else
     /* Epoch and claim come from the record alone. */
     NEWER(bus[x].e); ASK(bus[x].p); UNKNOWN(x)
#endif
#ifdef BUG_CLAIM_NOT_COMPARED
  :: !closed && bus[x].e == E -> on_same(x)
#else
  :: !closed && bus[x].e == E && bus[x].c != C -> UNKNOWN(x)
  :: !closed && bus[x].e == E && bus[x].c == C -> on_same(x)
#endif
#endif
  fi
}
inline on_same(x) {
  if
#ifdef BUG_KEPT_NOT_COMPARED
  :: bus[x].k > n -> n = bus[x].f; show_to(bus[x].e, bus[x].c, bus[x].t); confirm(bus[x].k); pos = bus[x].p
#else
  :: bus[x].k > n -> ASK(bus[x].p); UNUSED(x)
#endif
  :: bus[x].k <= n && bus[x].f > n ->
#ifdef BUG_GAP_APPLIED
     n = bus[x].f; show_to(bus[x].e, bus[x].c, bus[x].t)
#else
#ifdef BUG_READ_EACH_GAP
     again = true;
#endif
     UNUSED(x)
#endif
  :: bus[x].k <= n && bus[x].f <= n ->
     show_to(bus[x].e, bus[x].c, bus[x].t);
#ifdef BUG_CONFIRM_ALL
     solid = dlen; if :: bus[x].p > pos -> pos = bus[x].p :: else fi
#else
     if :: bus[x].p > pos -> confirm(bus[x].k); pos = bus[x].p; last = PAIR(bus[x].e, bus[x].c) :: else fi
#endif
  fi
}

/* The ledger was restored: its record is below what the reader has, or of another claim. */
#ifdef TEXT_POSITION_ALONE
#define RESTORED (rlen < pos)
#else
#define RESTORED (rlen < pos || rep < E || E > 0 && rep == E && rcl != C || OTHER)
#endif
#ifdef TEXT_CURSOR_WITHOUT_CLAIM
#define OTHER false
#else
#ifdef FAILOVER
#define OTHER (pos > 0 && pos <= rlen && ((OLD -> PAIR(J[MAXJ + pos - 1].e, J[MAXJ + pos - 1].c) : PAIR(J[pos - 1].e, J[pos - 1].c)) != last))
#else
#define OTHER false
#endif
#endif

inline entries(old) {
  do
  :: pos < rlen ->
     if
#ifdef TEXT_ENTRIES_WITHOUT_CLAIM
     :: J[old + pos].e > E ->
#else
     :: J[old + pos].e > E || J[old + pos].e == E && J[old + pos].c != C ->
#endif
#ifndef BUG_NO_TAKE_BACK
        take_back();
#endif
        E = J[old + pos].e; C = J[old + pos].c; n = 0; solid = dlen
     :: else
     fi;
#ifndef BUG_EPOCH_AFTER_ENTRIES
#ifndef BUG_UNFENCED
#ifndef BUG_NO_EPOCH_CHECK
#ifndef BUG_NO_BASE
     assert(FAILED || J[old + pos].e == E);
#endif
#endif
#endif
#endif
     if
#ifdef BUG_COVERED_IS_SHOWN_AGAIN
     :: J[old + pos].m == 0 -> n = J[old + pos].f; show_to(J[old + pos].e, J[old + pos].c, J[old + pos].n); solid = dlen
     :: J[old + pos].m == 1 && J[old + pos].n <= n -> confirm(J[old + pos].n)
#else
#ifdef BUG_MARKER_TAKES_BACK
     :: J[old + pos].m == 1 && J[old + pos].n <= n -> take_back(); n = J[old + pos].n; D[dlen] = MARK(J[old + pos].e, J[old + pos].c, n); dlen++; solid = dlen
     :: J[old + pos].m == 0 && J[old + pos].n <= n -> confirm(J[old + pos].n)
#else
     :: J[old + pos].n <= n -> confirm(J[old + pos].n)
#endif
     :: J[old + pos].n > n && J[old + pos].m == 0 -> show_to(J[old + pos].e, J[old + pos].c, J[old + pos].n); solid = dlen
#endif
     :: J[old + pos].n > n && J[old + pos].m == 1 -> n = J[old + pos].n; D[dlen] = MARK(J[old + pos].e, J[old + pos].c, n); dlen++; solid = dlen
     fi;
     last = PAIR(J[old + pos].e, J[old + pos].c);
     pos++
  :: else -> break
  od
}
inline on_journal() {
  if
  :: RESTORED ->
     assert(FAILED);
     do :: dlen > 0 -> dlen--; D[dlen] = 0 :: else -> break od;
     solid = 0; pos = 0; E = 0; C = 0; n = 0; last = 0; wantP = 0; wantN = 0
  :: else
  fi;
#ifdef FAILOVER
  if :: rold -> entries(MAXJ) :: else -> entries(0); synced = FAILED fi;
#else
  entries(0);
#endif
  if
  :: rep > E ->
#ifndef BUG_NO_TAKE_BACK
     take_back();
#endif
     E = rep; C = rcl; n = 0; solid = dlen
  :: rep == E -> C = rcl
  :: else
  fi;
  if
  :: rend ->
#ifndef BUG_END_KEEPS_DRAFT
     take_back();
#endif
     closed = true
  :: else
  fi;
  if :: wantP <= pos -> wantP = 0 :: else fi;
  if :: wantN <= E -> wantN = 0 :: else fi;
  reading = false; rlen = 0; rep = 0; rcl = 0; rend = false;
#ifdef FAILOVER
  rold = false;
#endif
  if :: closed -> wantP = 0; wantN = 0; wantRead = false :: else fi
}

/* Journal prefix, then consecutive units of one claim; a part that the journal contradicts is of a claim older than what does. */
inline verify(old, alen) {
  i = 0; q = 0; cc = 0; x = 0; y = 0; bad = false; ok = true;
  do
  :: q < alen && i < dlen && !bad ->
     cc = J[old + q].f;
     do
     :: cc < J[old + q].n && i < dlen && D[i] == UNIT(J[old + q].e, J[old + q].c, cc + 1) -> i++; cc++
     :: else -> break
     od;
     if
     :: cc == J[old + q].n -> q++
     :: cc < J[old + q].n && i == dlen -> break
     :: cc < J[old + q].n && i < dlen && J[old + q].m == 1 && D[i] == MARK(J[old + q].e, J[old + q].c, J[old + q].n) -> i++; q++
     :: else -> bad = true
     fi
  :: else -> break
  od;
  if
  :: i < dlen ->
     x = D[i] / 8; cc = 0;
     if :: D[i] >= 128 || bad && PAIR(J[old + q].e, J[old + q].c) <= x && (LOST == 0 || x != LOST) -> ok = false :: else fi;
     /* What of this epoch came before, in what is shown. */
     do
     :: y < q -> if :: PAIR(J[old + y].e, J[old + y].c) == x -> cc = J[old + y].n :: else fi; y++
     :: else -> break
     od;
     do
     :: i < dlen -> if :: D[i] != UNIT(0, 0, 0) + x * 8 + cc + 1 -> ok = false :: else fi; cc++; i++
     :: else -> break
     od
  :: else
  fi;
  if :: closed && (bad || q != alen || i != dlen || solid != dlen) -> ok = false :: else fi;
  i = 0; q = 0; cc = 0; x = 0; y = 0; bad = false
}
inline check() {
  verify(0, jlen);
#ifdef FAILOVER
  if :: !ok && !SYNCED -> verify(MAXJ, olen) :: else fi;
#endif
  assert(ok); ok = false
}

/* While a read is under way what arrives waits for its answer (or is lost: the queue has a bound). */
#ifdef TEXT_JUDGED_DURING_A_READ
#define WAITS false
#else
#ifdef BUG_FORGETS_WHILE_READING
#define WAITS false
#else
#ifdef BUG_TWO_READS
#define WAITS false
#else
#define WAITS (reading || !closed && (wantRead || wantP > 0 || wantN > 0 || again))
#endif
#endif
#endif
inline receive(x) {
#ifdef LIVE
  d_step {
    if
    :: bus[x].kind == FRAME -> on_frame(x)
    :: bus[x].kind == HINT && !closed ->
#ifdef BUG_FORGETS_WHILE_READING
       if :: !reading -> wantRead = true :: else fi
#else
       wantRead = true
#endif
    :: else
    fi;
    check(); free(x) }
#else
  if
  :: d_step { on_frame(x); wantP = 0; wantN = 0; again = false; check(); free(x) }
  :: d_step { on_frame(x); wantP = 0; wantN = 0; again = false; check() }         /* it comes again */
  :: d_step { free(x) }                                            /* it is lost */
  fi
#endif
}
inline ask() {
#ifndef BUG_TWO_READS
  assert(!reading);
#endif
  reading = true;
#ifdef BUG_EPOCH_AFTER_ENTRIES
  rlen = jlen
#else
  rlen = jlen; rep = epoch; rcl = claim; rend = ended
#endif
}
inline answer() {
#ifdef BUG_EPOCH_AFTER_ENTRIES
  rep = epoch; rcl = claim; rend = ended && rlen == jlen;
#endif
  on_journal();
#ifndef LIVE
  wantRead = false;
#endif
  check()
}
/* Interest is committed; whoever holds the task then is told. */
#define HELD (!ended && !dead[PAIR(epoch, claim)])
#define WATCH interest = true; if :: HELD -> put(LOOK, epoch, claim, 0, 0, 0, 0, 0) :: else fi

proctype Reader() {
  byte s, i, q, cc, x, y; bool bad, ok;
#ifdef LIVE
#ifdef BUG_INTEREST_AFTER_THE_RECORD
  atomic { ask() };
  d_step { answer() };
  atomic { ROOM -> WATCH };
#else
  atomic { ROOM -> WATCH; wantRead = true };
#endif
#endif
end:
  do
#ifdef LIVE
#ifdef BUG_TWO_READS
  :: atomic { !closed && (wantRead || wantP > 0 || wantN > 0 || again) -> assert(!reading);
#else
  :: atomic { !closed && !reading && (wantRead || wantP > 0 || wantN > 0 || again) ->
#endif
#ifdef COUNT
       /* What frames bring: at most one read for each append or claim. */
       if :: !wantRead -> reads++; assert(reads <= appends) :: else fi;
#endif
       wantRead = false; wantP = 0; wantN = 0; again = false; ask() }
#else
  :: atomic { !closed && !reading -> ask() }
#endif
  :: d_step { !closed && reading -> answer() }
#ifdef LIVE
  :: atomic { !WAITS && (bus[0].kind == FRAME || bus[0].kind == HINT) || bus[0].kind == LOOK && dead[PAIR(bus[0].e, bus[0].c)] -> receive(0) }
  :: atomic { !WAITS && (bus[1].kind == FRAME || bus[1].kind == HINT) || bus[1].kind == LOOK && dead[PAIR(bus[1].e, bus[1].c)] -> receive(1) }
#ifdef LOSS
  :: d_step { bus[0].kind != FREE && losses < LOSS -> losses++; lostSince = true; free(0) }
  :: d_step { bus[1].kind != FREE && losses < LOSS -> losses++; lostSince = true; free(1) }
#endif
#ifdef FAILOVER
  :: atomic { gone && ROOM ->            /* its inbox is gone: a gap. Interest again, then the record */
       gone = false; if :: !closed -> WATCH; wantRead = true :: else fi }
#endif
#else
  :: atomic { !WAITS && bus[0].kind == FRAME -> receive(0) }
  :: atomic { !WAITS && bus[1].kind == FRAME -> receive(1) }
#if SLOTS > 2
  :: atomic { !WAITS && bus[2].kind == FRAME -> receive(2) }
#endif
#endif
  od
}

init {
  byte i, q, cc, x, y; bool bad, ok;
  atomic { run Worker(1, 0); run Ledger(); run Reader() };
#ifdef LIVE
  /* Quiet: the reader shows all that the worker knows the journal has; and all that it said, but for frames that came too early. */
  timeout -> d_step {
    check();
    if :: !lostSince -> assert(!ended || closed);
      if
      :: !ended && !dead[PAIR(epoch, claim)] -> assert(E == epoch && C == claim && n >= kept[PAIR(epoch, claim)]);
         assert(dropped || losses > 0 || n == said[PAIR(epoch, claim)])
      :: else
      fi
    :: else
    fi;
#ifdef LOSS
    wantRead = !closed; polled = true
#endif
  };
#ifdef LOSS
  timeout -> d_step {
    check();
    assert(!ended || closed);
    if
    :: !ended && !dead[PAIR(epoch, claim)] -> assert(E == epoch && C == claim && n >= kept[PAIR(epoch, claim)])
    :: else
    fi }
#endif
#endif
}

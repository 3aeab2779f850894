/* Questions, answers and parking: one task with two calls in one wave, two workers, one or two people, faults at every step.
   Sessions, beats and takes are in delivery.pml; here a claim is one number. Every move of the store is one atomic step.
   NO_x takes one rule of the protocol away, BUG_x removes one guard; both must be found. A park may arrive late.
   K0, K1: the kinds of the two calls: 0 without a question, 1 approve, 2 client (the page runs it while the question is open). */
#include "status.h"
#define RUN RUNNING
#define CLG CANCELLING
#define SUC SUCCESS
#define FAI FAILED
#define CAN CANCELLED
#ifndef NO_EXPIRY
#define FIX_EXPIRY
#endif
#ifndef NO_SWEEP
#define FIX_SWEEP
#endif
#ifndef NO_PARKANS
#define FIX_PARKANS
#endif
#ifndef NO_PARKRUN
#define FIX_PARKRUN
#endif
#ifndef NO_CLOSEWITH
#define FIX_CLOSEWITH
#endif
#ifndef NO_CANCELQ
#define FIX_CANCELQ
#endif
#ifndef NO_SEAL
#define FIX_SEAL
#endif
#ifndef NO_STEER
#define FIX_STEER
#endif
#ifndef NO_WITHDRAW
#define FIX_WITHDRAW
#endif
#ifndef NO_END
#define FIX_END
#endif
#ifndef NO_CLIENT
#define FIX_CLIENT
#endif
#ifndef NO_SETTLE
#define FIX_SETTLE
#endif
#ifndef NO_HELDDIGEST
#define FIX_HELDDIGEST
#endif
#ifndef NO_REPLAY
#define FIX_REPLAY
#endif
#ifndef NO_PARKSTATUS
#define FIX_PARKSTATUS
#endif
#ifndef NO_OLDINTENT
#define FIX_OLDINTENT
#endif
#ifdef FIX_OLDINTENT
#define AGAIN 4   /* about to run again what an earlier holder began */
#else
#define AGAIN 2
#endif
#ifndef K0
#define K0 1
#endif
#ifndef K1
#define K1 1
#endif
#ifndef F
#define F 1
#endif
#ifndef CANC
#define CANC 1
#endif
#ifndef MSG      /* 0 none, 1 queue, 2 steer; replace is a cancel */
#define MSG 0
#endif
#ifndef EXP
#define EXP 1
#endif
#ifndef CHG      /* how often the world changes what a call would do */
#define CHG 1
#endif
#ifndef RELS
#define RELS 0
#endif
#ifndef PAUSE
#define PAUSE 0
#endif
#ifndef MAXATT
#define MAXATT 9
#endif
#ifndef PEOPLE
#define PEOPLE 2
#endif
#ifndef NW
#define NW 2
#endif
#ifdef SAFE      /* replay: 'safe' */
#define REPLAY 1
#else
#define REPLAY 0
#endif
#define LIVE_ (st<=CLG)
/* question */
#define NOQ 0
#define OPENQ 1
#define YES 2
#define NO 3
#define RES 4     /* a client's result */
#define CLOSED 5  /* started, refused or result taken */
#define EXPIRED 6
#define WITHDR 7
#define CANQ 8
#define ENDQ 9
#define ANSWERED(s) (s==YES || s==NO || s==RES)
/* journal of a call */
#define INTENT 1
#define DONE 2
#define NOTST 3
#define UNK 4
#define KIND(c) (c==0 -> K0 : K1)
#define I(w,c) ((w)*2+(c))

byte st=INIT; bool inready=1, inpark, inlater; byte hold, cl, att; bool told; byte steer;
bool started;
byte q[2], qid[2], j[2], shown[2], by[6]; byte cur[2];
byte outd[2];                       /* journaled: outdated */
bool apause;
/* workers */
byte kcl[NW], r[NW*2], vq[NW*2], vj[NW*2], vst[NW], pv[NW*2]; bool loaded[NW], paused[NW], lap[NW], smem[NW], wpk[NW];
byte pm, pmw, pmcl; bool pmchg;     /* one park request on its way */
/* people */
byte ps[PEOPLE*2], pid_[PEOPLE*2], pdig[PEOPLE*2], pval[PEOPLE*2]; bool pacc[PEOPLE*2];
/* budgets */
byte faults=F, cancels=CANC, msgs=(MSG>0 -> 1 : 0), exps=EXP, chgs=CHG, rels=RELS, pauses=PAUSE;
/* ghosts */
byte term, eff[2], yesdig[2]; bool acc, ran[2]; bool yesid[2]; bool accans[2];

#define ANYOPEN (q[0]==OPENQ || q[1]==OPENQ)
/* answered, or closed by the store and not journaled: its worker must act on it */
#define TODO(c) (ANSWERED(q[c]) || ((q[c]==EXPIRED || q[c]==WITHDR) && j[c]==0))
#define ANYANS (TODO(0) || TODO(1))
#define ANYRUN (j[0]==INTENT || j[1]==INTENT)

inline inv() { d_step {
  assert(LIVE_ -> (inready+inpark+inlater+(hold!=0)==1) : (inready+inpark+inlater+(hold!=0)==0));  /* (b) */
  assert(term<=1 && (term==1)==(st>=SUC));                                   /* P1 */
  assert(!(acc && (st==SUC || st==FAI || st==RUN || st==INIT)));             /* P3 */
  assert(!inpark || (ANYOPEN && !ANYANS && st==RUN && steer!=1 && !ANYRUN)); /* no lost wake-up */
  assert(eff[0]<=1+REPLAY*F && eff[1]<=1+REPLAY*F);                          /* P14 once */
  assert(!(j[0]==NOTST && (eff[0]>0 || ran[0])) && !(j[1]==NOTST && (eff[1]>0 || ran[1]))); /* truthful */
  assert(qid[0]<=1+outd[0] && qid[1]<=1+outd[1]);                            /* asked again only if outdated */
  assert(!(st>=SUC) || (q[0]!=OPENQ && q[1]!=OPENQ && !ANSWERED(q[0]) && !ANSWERED(q[1])));  /* closed at the end */
  assert(!(st>=SUC && st!=FAI) || ((qid[0]==0 || j[0]>INTENT) && (qid[1]==0 || j[1]>INTENT))); /* each asked call has a result */
  assert(!(st==SUC) || steer==0 || steer==3);                                /* a steering message is not lost */
  assert((!accans[0] || ANSWERED(q[0]) || q[0]==ENDQ) && (!accans[1] || ANSWERED(q[1]) || q[1]==ENDQ)); /* P14: an accepted answer is not undone */
  } }

inline changed() { if :: pm!=0 -> pmchg=1 :: else fi }
inline wake() { /* parked: ready; held: an order; else nothing */
  if :: inpark -> inpark=0; inready=1; if :: st==RUN -> st=AFTER_RELEASE(st) :: else fi
     :: !inpark && hold!=0 -> told=1
     :: else fi; changed() }
inline endit(to) { assert(LIVE_); st=to; term++; hold=0; inready=0; inpark=0; inlater=0; told=0;
#ifdef FIX_END
  if :: q[0]==OPENQ || ANSWERED(q[0]) -> q[0]=ENDQ :: else fi; if :: q[1]==OPENQ || ANSWERED(q[1]) -> q[1]=ENDQ :: else fi;
#endif
  changed() }

#define REALLY (hold==w+1 && cl==kcl[w])
#ifdef BUG_FENCE
#define ME (kcl[w]!=0 && LIVE_)
#else
#define ME (REALLY && LIVE_)
#endif
#define UP (!paused[w])
#define BUSYW(w) (r[I(w,0)]!=0 || r[I(w,1)]!=0)
inline forget(w) { kcl[w]=0; loaded[w]=0; lap[w]=0; smem[w]=0; wpk[w]=0; vst[w]=0; d_step { r[I(w,0)]=0; r[I(w,1)]=0; vq[I(w,0)]=0; vq[I(w,1)]=0; vj[I(w,0)]=0; vj[I(w,1)]=0; pv[I(w,0)]=0; pv[I(w,1)]=0 } }
inline view(w) { d_step { vq[I(w,0)]=q[0]; vq[I(w,1)]=q[1]; vj[I(w,0)]=j[0]; vj[I(w,1)]=j[1]; vst[w]=st } }
inline freeit() { /* (f) */
  hold=0; cl++; if :: steer==2 -> steer=1 :: else fi; changed() }

/* what a worker does with the journal entry of a call it does not run itself */
#define RUNNABLE(c) (loaded[w] && UP && kcl[w]!=0 && vst[w]==RUN && r[I(w,c)]==0)

#define MAYTAKE ((!apause || (st==CLG && SETTLES)) && (!BUSYSLOTS || (st==CLG && SETTLES)))
#ifdef FIX_SETTLE
#define SETTLES 1
#else
#define SETTLES 0
#endif
#ifdef LONG      /* every slot is taken by a long task */
#define BUSYSLOTS (inrun)
bool inrun;
#else
#define BUSYSLOTS (0)
#endif

#ifdef FIX_SEAL
#define SEAL (st==RUN)
#else
#define SEAL 1
#endif
#ifdef BUG_INTENTQ
#define INTENTQ(c) 1
#else
#define INTENTQ(c) (KIND(c)==0 || q[c]==YES)
#endif
#ifdef BUG_ANSID
#define ANSID 1
#else
#define ANSID (qid[c]==pid_[P(p,c)])
#endif
#ifdef BUG_FIRST
#define FIRST(c) (q[c]==OPENQ || ANSWERED(q[c]))
#else
#define FIRST(c) (q[c]==OPENQ)
#endif
inline ask(c) { /* journal and question in one append */
  if :: ME && SEAL -> assert(qid[c]<3); q[c]=OPENQ; qid[c]++; shown[c]=cur[c]; vq[I(w,c)]=OPENQ; printf("W%d asks call %d, id %d\n",w,c,qid[c]); changed();
     :: else -> if :: ME -> view(w) :: else -> printf("W%d ask refused\n",w); forget(w) fi fi }

#define P(p,c) ((p)*2+(c))
/* guards of the steps that concern one call */
#define G1(c) (RUNNABLE(c) && vj[I(w,c)]==0 && vq[I(w,c)]==NOQ && KIND(c)!=0)
#define G2(c) (RUNNABLE(c) && vj[I(w,c)]==0 && KIND(c)==0)
#define G3(c) (RUNNABLE(c) && vj[I(w,c)]==0 && vq[I(w,c)]==YES)
#define G4(c) (UP && loaded[w] && r[I(w,c)]==1)
#define G5(c) (UP && loaded[w] && j[c]==INTENT && q[c]==YES && r[I(w,c)]>=2)
#define G6(c) (UP && loaded[w] && (r[I(w,c)]==2 || r[I(w,c)]==AGAIN) && vj[I(w,c)]==INTENT)
#define G7(c) (UP && loaded[w] && r[I(w,c)]==3)
#define G8(c) (RUNNABLE(c) && vj[I(w,c)]==0 && (vq[I(w,c)]==NO || vq[I(w,c)]==EXPIRED || vq[I(w,c)]==WITHDR))
#define G9(c) (RUNNABLE(c) && vj[I(w,c)]==0 && vq[I(w,c)]==RES)
#define G10(c) (RUNNABLE(c) && vj[I(w,c)]==INTENT)
#define G11(c) (ps[P(p,c)]==0 && q[c]==OPENQ)
#define G12(c) (ps[P(p,c)]==1 || ps[P(p,c)]==2)
#define G13(c) (ps[P(p,c)]==3 && q[c]==OPENQ && qid[c]>pid_[P(p,c)])

proctype Worker(byte w) { byte c;
  do
  :: atomic { UP && kcl[w]==0 && inready && MAYTAKE ->
       inready=0; cl++; hold=w+1; kcl[w]=cl; att++; started=1; st=AFTER_CLAIM(st);
       printf("W%d takes, claim %d\n",w,cl); changed(); inv() }
  :: atomic { UP && kcl[w]!=0 && !loaded[w] -> /* reads the journal */
       if :: ME -> loaded[w]=1; view(w); printf("W%d reads q %d %d j %d %d st %d\n",w,q[0],q[1],j[0],j[1],st) :: else -> forget(w) fi }
  :: atomic { UP && loaded[w] && ME && told -> /* orders by push, beat or write */
       told=0; view(w); if :: steer==1 -> steer=2; smem[w]=1 :: else fi; printf("W%d reads orders q %d %d st %d\n",w,q[0],q[1],st); changed() }
  :: atomic { UP && loaded[w] && ME && !told && steer==1 -> steer=2; smem[w]=1; changed() }
#ifdef FIX_STEER
  :: atomic { UP && loaded[w] && smem[w] && steer==2 -> if :: ME -> steer=3; smem[w]=0; changed() :: else -> forget(w) fi; inv() }
#endif
  :: atomic { UP && kcl[w]!=0 && !ME -> printf("W%d learns that it lost the task\n",w); forget(w) }
  /* --- calls --- */
  :: atomic { G1(0) || G1(1) -> if :: G1(0) -> c=0 :: G1(1) -> c=1 fi; ask(c); c=0; inv() }
  :: atomic { G2(0) || G2(1) -> if :: G2(0) -> c=0 :: G2(1) -> c=1 fi; pv[I(w,c)]=cur[c]; r[I(w,c)]=1; c=0 }
  :: atomic { G3(0) || G3(1) -> if :: G3(0) -> c=0 :: G3(1) -> c=1 fi; /* a new preview */
       pv[I(w,c)]=cur[c];
#ifndef FIX_HELDDIGEST
       if :: r[I(w,c)]==0 && started && vst[w]==RUN && pv[I(w,c)]!=shown[c] && !lap[w] && ME -> r[I(w,c)]=1; pv[I(w,c)]=cur[c] /* the page asks for the check on resume only */
          :: else -> 
#endif
#ifdef BUG_NODIGEST
       r[I(w,c)]=1
#else
#ifdef BUG_START
       if :: cur[c]==shown[c] -> r[I(w,c)]=1; eff[c]++; printf("W%d STARTS call %d before its intent\n",w,c)
#else
       if :: cur[c]==shown[c] -> r[I(w,c)]=1
#endif
          :: else -> if :: ME && q[c]==YES && SEAL -> outd[c]++; accans[c]=0; yesid[c]=0; printf("W%d call %d outdated, asked again\n",w,c);
#ifdef BUG_TWOSTEP
                           q[c]=NOQ; vq[I(w,c)]=NOQ
#else
                           ask(c)
#endif
                        :: else -> if :: ME -> view(w) :: else -> forget(w) fi fi
       fi
#endif
#ifndef FIX_HELDDIGEST
       fi
#endif
       ; c=0; inv() }
  :: atomic { G4(0) || G4(1) -> if :: G4(0) -> c=0 :: G4(1) -> c=1 fi; /* intent; it closes the question */
       if :: ME && j[c]==0 && SEAL && INTENTQ(c) -> assert(REALLY); j[c]=INTENT; vj[I(w,c)]=INTENT; r[I(w,c)]=2; printf("W%d intent call %d\n",w,c); changed();
             assert(st!=CLG);                                  /* nothing starts after an accepted cancel */
#ifdef FIX_CLOSEWITH
             if :: KIND(c)!=0 -> q[c]=CLOSED; vq[I(w,c)]=CLOSED; accans[c]=0 :: else fi
#endif
          :: else -> if :: ME -> r[I(w,c)]=0; view(w) :: else -> forget(w) fi fi; c=0; inv() }
#ifndef FIX_CLOSEWITH
  :: atomic { G5(0) || G5(1) -> if :: G5(0) -> c=0 :: G5(1) -> c=1 fi; if :: ME -> q[c]=CLOSED; vq[I(w,c)]=CLOSED; accans[c]=0; changed() :: else -> forget(w) fi; c=0; inv() }
#endif
  :: atomic { G6(0) || G6(1) -> if :: G6(0) -> c=0 :: G6(1) -> c=1 fi; /* the call starts */
#ifndef BUG_LEASECHECK
       if :: lap[w] -> forget(w) :: else ->
#endif
       printf("W%d STARTS call %d\n",w,c); r[I(w,c)]=3;
#ifndef BUG_START
       eff[c]++;
#endif
       assert(REALLY);                                         /* P10: no worker starts what it lost */
       assert(KIND(c)==0 || (yesid[c] && yesdig[c]==pv[I(w,c)]));   /* P13, P14: a yes for exactly what runs */
#ifndef BUG_LEASECHECK
       fi
#endif
       ; c=0; inv() }
  :: atomic { G7(0) || G7(1) -> if :: G7(0) -> c=0 :: G7(1) -> c=1 fi; /* it ends */
       if :: ME -> assert(j[c]==INTENT); j[c]=DONE; vj[I(w,c)]=DONE; r[I(w,c)]=0; printf("W%d ends call %d\n",w,c); changed() :: else -> forget(w) fi; c=0; inv() }
  :: atomic { G8(0) || G8(1) -> if :: G8(0) -> c=0 :: G8(1) -> c=1 fi; /* refused, expired, withdrawn: journaled */
       if :: ME && j[c]==0 -> 
#ifdef FIX_CLIENT
             if :: KIND(c)==2 -> j[c]=UNK :: else -> j[c]=NOTST fi;
#else
             j[c]=NOTST;
#endif
             if :: q[c]==NO -> q[c]=CLOSED; accans[c]=0 :: else fi; view(w); printf("W%d not-started call %d\n",w,c); changed()
          :: else -> if :: ME -> view(w) :: else -> forget(w) fi fi; c=0; inv() }
  :: atomic { G9(0) || G9(1) -> if :: G9(0) -> c=0 :: G9(1) -> c=1 fi; /* client's result */
       if :: ME && q[c]==RES -> j[c]=DONE; q[c]=CLOSED; accans[c]=0; view(w); changed() :: else -> if :: ME -> view(w) :: else -> forget(w) fi fi; c=0; inv() }
  :: atomic { G10(0) || G10(1) -> if :: G10(0) -> c=0 :: G10(1) -> c=1 fi; /* an earlier holder began it */
#ifndef FIX_CLOSEWITH
       if :: q[c]==YES && ME -> r[I(w,c)]=2 /* read as: an answered question, so it goes on */
          :: else ->
#endif
       if
#ifdef SAFE
#ifdef FIX_REPLAY
       :: cur[c]==shown[c] || KIND(c)==0 -> pv[I(w,c)]=cur[c]; r[I(w,c)]=AGAIN
       :: cur[c]!=shown[c] && KIND(c)!=0 -> if :: ME -> j[c]=UNK; view(w); changed() :: else -> forget(w) fi
#else
       :: pv[I(w,c)]=cur[c]; r[I(w,c)]=AGAIN
#endif
#else
       :: if :: ME -> j[c]=UNK; view(w); printf("W%d unknown call %d\n",w,c); changed() :: else -> forget(w) fi
#endif
       fi
#ifndef FIX_CLOSEWITH
       fi
#endif
       ; c=0; inv() }
  /* --- end --- */
  :: atomic { UP && loaded[w] && vst[w]==RUN && !BUSYW(w) && vj[I(w,0)]>INTENT && vj[I(w,1)]>INTENT -> 
#ifdef BUG_SUCCESS
       if :: ME && st==CLG -> endit(SUC); forget(w)
#else
       if :: ME && st==CLG -> view(w)
#endif
          :: ME && steer!=1 && st==RUN -> if :: smem[w] -> steer=3; smem[w]=0 :: else fi; endit(SUC); printf("W%d finishes\n",w); forget(w)
          :: ME && st==RUN && steer==1 -> steer=2; smem[w]=1; view(w); changed()
          :: else -> forget(w) fi; inv() }
  :: atomic { UP && loaded[w] && vst[w]==CLG && r[I(w,0)]!=3 && r[I(w,1)]!=3 -> /* settles: nothing runs */
       if :: ME -> 
          for (c : 0 .. 1) {
            if :: j[c]==0 -> 
#ifdef FIX_CLIENT
                  if :: KIND(c)==2 && qid[c]>0 -> j[c]=UNK :: else -> j[c]=NOTST fi
#else
                  j[c]=NOTST
#endif
               :: j[c]==INTENT && r[I(w,c)]==2 -> j[c]=NOTST  /* journaled, never begun by the one who settles */
               :: j[c]==INTENT && r[I(w,c)]!=2 -> j[c]=UNK
               :: else fi;
            if :: ANSWERED(q[c]) || q[c]==OPENQ -> q[c]=CANQ; accans[c]=0 :: else fi }
          c=0; endit(CAN); printf("W%d settles\n",w); forget(w)
          :: else -> forget(w) fi; inv() }
  /* --- park --- */
  :: atomic { UP && loaded[w] && !BUSYW(w) && (vq[I(w,0)]==OPENQ || vq[I(w,1)]==OPENQ) && !(vq[I(w,0)]==NOQ && vj[I(w,0)]==0) && !(vq[I(w,1)]==NOQ && vj[I(w,1)]==0) && vj[I(w,0)]!=INTENT && vj[I(w,1)]!=INTENT && !wpk[w] && pm==0 && vst[w]==RUN && !ANSWERED(vq[I(w,0)]) && !ANSWERED(vq[I(w,1)]) ->
       wpk[w]=1; pm=1; pmw=w; pmcl=kcl[w]; pmchg=0; printf("W%d sends park\n",w) }
  :: atomic { UP && loaded[w] && wpk[w] && pm==0 -> /* no answer came: repeats; a claim that is gone is dropped */
       if :: ME -> wpk[w]=0; view(w) :: else -> forget(w) fi }
  :: atomic { UP && rels>0 && loaded[w] && !BUSYW(w) && !wpk[w] -> rels--; /* release, e.g. SIGTERM */
       if :: ME -> freeit(); inready=1; att--; st=AFTER_RELEASE(st); printf("W%d releases\n",w) :: else fi; forget(w); inv() }
  od }

#ifdef BUG_PARKCLAIM
#define PARKCLAIM (hold==pmw+1)
#else
#define PARKCLAIM (hold==pmw+1 && cl==pmcl)
#endif
#ifdef BUG_PARKTOLD
#define PARKTOLD 1
#else
#define PARKTOLD (!told && steer!=1)
#endif
#ifdef FIX_PARKANS
#define PARKANS (!ANYANS)
#else
#define PARKANS 1
#endif
#ifdef FIX_PARKRUN
#define PARKRUN (!pmchg)
#else
#define PARKRUN 1
#endif
#ifdef FIX_PARKSTATUS
#define PARKST (st==RUN)
#else
#define PARKST 1
#endif
#ifdef FIX_STEER
#define PARKSTEER (steer!=2)
#else
#define PARKSTEER 1
#endif
proctype Net() {
  do :: atomic { pm!=0 -> 
       if :: PARKCLAIM && LIVE_ && ANYOPEN && PARKTOLD && PARKANS && PARKRUN && PARKSTEER && PARKST ->
             assert(cl==pmcl);                                  /* P10 */
             printf("parked\n"); hold=0; cl++; att--; inpark=1;
             if :: wpk[pmw] && kcl[pmw]==pmcl -> forget(pmw) :: faults>0 -> faults-- :: !(wpk[pmw] && kcl[pmw]==pmcl) fi
          :: else -> printf("park: busy or gone\n"); 
             if :: wpk[pmw] && kcl[pmw]==pmcl && hold==pmw+1 && cl==pmcl && loaded[pmw] -> wpk[pmw]=0; if :: steer==1 -> steer=2; smem[pmw]=1 :: else fi; told=0; view(pmw)
                :: faults>0 -> faults--
                :: !(wpk[pmw] && kcl[pmw]==pmcl && hold==pmw+1 && cl==pmcl && loaded[pmw]) fi
       fi; pm=0; pmw=0; pmcl=0; pmchg=0; inv() } od }

/* a person sees an open question, answers it, repeats with the same nonce if no response came */
proctype Person(byte p) { byte c, rc;
  do
  :: atomic { G11(0) || G11(1) -> if :: G11(0) -> c=0 :: G11(1) -> c=1 fi; ps[P(p,c)]=1; pid_[P(p,c)]=qid[c]; pdig[P(p,c)]=shown[c];
       if :: KIND(c)==2 -> pval[P(p,c)]=RES; if :: p==0 -> ran[c]=1; printf("the page runs call %d\n",c) :: else -> ps[P(p,c)]=0 fi
          :: KIND(c)!=2 -> if :: pval[P(p,c)]=YES :: p==1 -> pval[P(p,c)]=NO fi fi; c=0 }
  :: atomic { G12(0) || G12(1) -> if :: G12(0) -> c=0 :: G12(1) -> c=1 fi;
#ifndef BUG_NONCE
       if :: by[c*3+pid_[P(p,c)]-1]==p+1 -> rc=1                    /* the same nonce: the same receipt */
          :: else ->
#endif
       if :: FIRST(c) && LIVE_ && ANSID -> printf("person %d answers call %d id %d: %d\n",p,c,pid_[P(p,c)],pval[P(p,c)]); rc=1;
             assert(!accans[c]);                                /* the first answer wins */
             assert(!acc);                                      /* an answer that cannot take effect is refused */
             assert(shown[c]==pdig[P(p,c)]);                    /* P13: accepted for what was shown */
             q[c]=pval[P(p,c)]; by[c*3+qid[c]-1]=p+1; accans[c]=1;
             if :: pval[P(p,c)]==YES -> yesid[c]=1; yesdig[c]=pdig[P(p,c)] :: else fi;
#ifdef BUG_ANSREADY
             inpark=0; inready=1
#else
#ifdef BUG_NOWAKE
             if :: hold!=0 -> told=1 :: else fi; changed()
#else
             wake()
#endif
#endif
          :: else -> rc=2 fi
#ifndef BUG_NONCE
       fi
#endif
       ; assert(!(rc==2 && pacc[P(p,c)]));                            /* the same nonce returns the same receipt */
       if :: rc==1 -> pacc[P(p,c)]=1 :: else fi;
       if :: ps[P(p,c)]=3 :: ps[P(p,c)]==1 && faults>0 -> faults--; ps[P(p,c)]=2; printf("response to person %d lost\n",p)   /* response lost */
       fi; rc=0; c=0; inv() }
  /* asked again: the same person may answer the new one too */
  :: atomic { G13(0) || G13(1) -> if :: G13(0) -> c=0 :: G13(1) -> c=1 fi; ps[P(p,c)]=0; pacc[P(p,c)]=0; pid_[P(p,c)]=0; pdig[P(p,c)]=0; pval[P(p,c)]=0; c=0 }
  od }

inline cancelit() {
  if :: !LIVE_ -> skip
#ifdef BUG_CANCELINIT
     :: st==INIT -> acc=1; endit(CAN)
#else
     :: st==INIT && !started -> acc=1; endit(CAN)
     :: st==INIT && started -> acc=1; st=CLG; 
#endif
     :: st==RUN -> acc=1; st=AFTER_CANCEL(st);
     :: else fi;
  if :: LIVE_ && acc ->
#ifdef FIX_CANCELQ
    if :: q[0]==OPENQ -> q[0]=CANQ :: else fi; if :: q[1]==OPENQ -> q[1]=CANQ :: else fi;
#endif
#ifdef BUG_CANCELPARK
    if :: hold!=0 -> told=1 :: else fi; changed()
#else
    if :: inlater -> inlater=0; inready=1 :: else fi; wake()
#endif
  :: else fi }

#ifdef BUG_EXPANS
#define DUE(c) (q[c]==OPENQ || ANSWERED(q[c]))
#else
#define DUE(c) (q[c]==OPENQ)
#endif
proctype Client() { byte c;
  do
  :: atomic { cancels>0 -> cancels--; if :: printf("cancel\n"); cancelit() :: skip fi; inv() }
#if MSG>0
  :: atomic { msgs>0 -> msgs--;
       if :: LIVE_ && st!=CLG -> printf("newer message\n");
#if MSG==2
             steer=1;
#endif
             for (c : 0 .. 1) { if :: q[c]==OPENQ -> q[c]=WITHDR
#ifdef BUG_WDANS
                                   :: ANSWERED(q[c]) -> q[c]=WITHDR
#endif
                                   :: else fi } c=0;
#ifdef FIX_WITHDRAW
             wake()
#else
             if :: hold!=0 -> told=1 :: else fi; changed()
#endif
          :: else fi; inv() }
#endif
  :: atomic { exps>0 && (DUE(0) || DUE(1)) && LIVE_ -> exps--; if :: DUE(0) -> c=0 :: DUE(1) -> c=1 fi; printf("question of call %d expires\n",c);
       q[c]=EXPIRED; c=0;
#ifdef FIX_EXPIRY
       wake();
#else
       inpark=0; inready=1; changed();  /* "the task becomes ready" */
#endif
       inv() }
  :: atomic { chgs>0 -> chgs--; if :: cur[0]=1-cur[0] :: cur[1]=1-cur[1] :: skip fi }
  :: atomic { pauses>0 -> pauses--; apause=1; printf("agent paused\n") }
  :: atomic { inlater -> inlater=0; inready=1; inv() }
#ifdef UNPAUSE
  :: atomic { apause -> apause=0 }
#endif
  od }

#define LAPSED (paused[hold-1] || kcl[hold-1]!=cl)
inline sweepit() { byte w_;
  w_=hold-1; if :: kcl[w_]==cl -> lap[w_]=1 :: else fi;
  printf("sweep frees\n"); told=0;
  if :: att>=MAXATT && st==RUN -> freeit(); endit(FAI)
     :: else -> freeit();
#ifdef FIX_SWEEP
        if :: st==CLG || att<2 -> inready=1 :: !(st==CLG || att<2) -> inlater=1 fi;
#else
        if :: ANYOPEN && !ANYRUN -> inpark=1; att-- :: else -> inready=1 fi;
#endif
        st=AFTER_RELEASE(st);
#ifndef FIX_SWEEP
        if :: inpark && st==INIT -> st=RUN :: else fi;
#endif
#ifdef BUG_SWEEPQ
        if :: q[0]==OPENQ -> q[0]=NOQ :: else fi;   /* the question dies with its worker, as today */
#endif
  fi; w_=0 }
proctype Sweeper() {
  do
  :: atomic { hold!=0 && LAPSED -> sweepit(); inv() }
  :: atomic { hold!=0 && !LAPSED && faults>0 -> faults--; printf("early lapse\n"); sweepit(); inv() }
  od }

proctype Env() { byte w;
  do
  :: atomic { faults>0 -> faults--; if :: w=0 :: w=NW-1 fi;
       if :: kcl[w]!=0 -> printf("W%d crashes\n",w); forget(w); paused[w]=0
          :: !paused[w] && kcl[w]!=0 -> printf("W%d stops\n",w); paused[w]=1
          :: else fi; w=0 }
  :: atomic { paused[0] -> paused[0]=0 }
  :: atomic { paused[NW-1] -> paused[NW-1]=0 }
#ifdef LONG
  :: atomic { st!=INIT && !inrun && (inpark || hold==0) -> inrun=1 }
#endif
  od }

/* when nothing can move any more, the task has ended, or waits for what does not come: a paused agent */
#ifdef LONG
#define MAYSTAY (inready && st!=CLG)
#else
#define MAYSTAY (apause && inready && st!=CLG)
#endif
proctype Mon() { 
  do
  :: atomic { timeout -> assert(st>=SUC || MAYSTAY); break }
  od }

init { atomic { cur[0]=0; run Worker(0);
#if NW>1
  run Worker(1);
#endif
  run Net(); run Person(0);
#if PEOPLE>1
  run Person(1);
#endif
  run Client(); run Sweeper(); run Env();
#ifndef LIVE
  run Mon()
#endif
  } }
#ifdef LIVE
ltl p { <> (st>=SUC) }
#endif

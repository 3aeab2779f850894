import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { TurnModel } from '../model/run-model.ts';
import { isLive, shownStatus } from '../model/shown-status.ts';
import { StateCard, Status } from '../page/parts.tsx';
import { useAddress } from '../page/router.tsx';
import { CallCard } from './call-card.tsx';
import type { CallContext } from './call-context.ts';
import { FateOf } from './fate.tsx';
import { getKey, type Item, toItems } from './items.ts';
import type { FollowedTask } from './task-follower.ts';

interface SaidAndDoneProps extends CallContext {
  readonly followed: FollowedTask;
}

/** About this many calls and texts are drawn or left out together. */
const BLOCK = 12;
/** About how tall something is before it was drawn. */
const GUESSED_HEIGHT = 64;
/** Longer runs show their calls closed. */
const MAX_OPEN_CALLS = 40;

/** What a run said and did. Of a long one only what is near the window is drawn. */
export function RunTranscript({ followed, ...context }: SaidAndDoneProps): ReactNode {
  const { run } = followed;
  const { hash } = useAddress();
  const items = run.turns.flatMap(toItems);
  if (items.length === 0) return <Waiting {...context} />;
  const blocks: Item[][] = [];
  for (let at = 0; at < items.length; at += BLOCK) blocks.push(items.slice(at, at + BLOCK));
  const isClosed = run.calls.size > MAX_OPEN_CALLS;
  return (
    <>
      {blocks.map((block, index) => (
        <Block
          key={index}
          isAlwaysDrawn={index === 0 || block.some((item) => 'call' in item && item.call.id === hash)}
          guessedHeight={block.length * GUESSED_HEIGHT}
        >
          {() =>
            block.map((item) => (
              <ItemView key={getKey(item)} {...{ item, isClosed, hash }} {...context} isLast={item === items.at(-1)} />
            ))
          }
        </Block>
      ))}
      {run.cut !== undefined && (
        <p className="rule">
          {run.cut.entries} entries ({run.cut.bytes} bytes) were left out: the journal is full
        </p>
      )}
    </>
  );
}

interface ItemViewProps extends CallContext {
  readonly item: Item;
  readonly isClosed: boolean;
  readonly hash: string;
  readonly isLast: boolean;
}

function ItemView({ item, isClosed, hash, isLast, ...context }: ItemViewProps): ReactNode {
  if (!('call' in item))
    return <Turn turn={item.turn} isWriting={isLast && isLive(context.task) && item.turn.endedAt === undefined} />;
  return (
    <CallCard
      call={item.call}
      isOpen={!isClosed || item.call.id === hash}
      isTarget={item.call.id === hash}
      {...context}
    />
  );
}

interface TurnProps {
  readonly turn: TurnModel;
  readonly isWriting: boolean;
  /** In a conversation, turns have no headings. */
  readonly isChat?: boolean;
}

/** A reply of the model, below the messages that it read first. */
export function Turn({ turn, isWriting, isChat = false }: TurnProps): ReactNode {
  const { number, text, thinking, isCut, steered, retry } = turn;
  return (
    <div className="stack2">
      {steered.map((words, index) => (
        <div key={index}>
          <p className="me say wrap">{words}</p>
          <p className="tag">
            <Status status="steered">delivered to this run</Status>
          </p>
        </div>
      ))}
      {!isChat && <p className="turn">Turn {number}</p>}
      {retry !== undefined && isWriting && <p className="sm soft">the model is asked again: {retry}</p>}
      {thinking !== '' && (
        <details>
          <summary className="sm mute">thinking</summary>
          <p className="soft wrap">{thinking}</p>
        </details>
      )}
      {(text !== '' || isWriting) && (
        <p className="say wrap">
          {text}
          {isCut && <span className="cut" role="img" aria-label="interrupted here" />}
          {isWriting && <span className="caret" aria-hidden="true" />}
        </p>
      )}
    </div>
  );
}

interface BlockProps {
  readonly isAlwaysDrawn: boolean;
  readonly guessedHeight: number;
  readonly children: () => ReactNode;
}

/** Draws its content when it comes near the window, and keeps its height afterwards. */
function Block({ isAlwaysDrawn, guessedHeight, children }: BlockProps): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [isNear, setNear] = useState(isAlwaysDrawn);
  const height = useRef(guessedHeight);
  useEffect(() => {
    if (isAlwaysDrawn) return undefined;
    const observer = new IntersectionObserver(
      ([entry]) => {
        const { isIntersecting = false, boundingClientRect } = entry ?? {};
        if (!isIntersecting && boundingClientRect) height.current = boundingClientRect.height || guessedHeight;
        setNear(isIntersecting);
      },
      { rootMargin: '1000px 0px' },
    );
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, [isAlwaysDrawn, guessedHeight]);
  const isDrawn = isNear || isAlwaysDrawn;
  return (
    <div ref={box} className="stack" style={isDrawn ? {} : { height: height.current }}>
      {isDrawn && children()}
    </div>
  );
}

function Waiting({ task, client, me }: CallContext): ReactNode {
  if (!isLive(task)) {
    return (
      <StateCard status={shownStatus(task)} title="Nothing was said or done">
        <p>
          {task.startedAt === undefined ? (
            <FateOf {...{ task, client }} tenant={task.tenant === me.tenant ? undefined : task.tenant} />
          ) : (
            'Its journal is empty. It did begin, so it may have had effects.'
          )}
        </p>
      </StateCard>
    );
  }
  return (
    <StateCard status="init" title="It has not begun">
      <p>
        It waits for a worker that runs the agent <b>{task.agent}</b>. If it is stopped now, it never begins.
      </p>
    </StateCard>
  );
}

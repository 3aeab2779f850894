import { type ReactNode, useEffect, useRef, useState } from 'react';
import { describeError } from '../api/session.ts';
import { QuestionCard } from '../approval/question-card.tsx';
import { plural } from '../model/format.ts';
import type { CallModel, RunModel } from '../model/run-model.ts';
import { shownCallStatus } from '../model/shown-status.ts';
import { describeState, findSubject, modelSaw, toView } from '../model/summary.ts';
import { Button, Status } from '../page/parts.tsx';
import type { CallContext } from './call-context.ts';
import { Details } from './details.tsx';
import { getKey, toItems } from './items.ts';

interface CallCardProps extends CallContext {
  readonly call: CallModel;
  readonly isOpen: boolean;
  /** The address points at it. */
  readonly isTarget: boolean;
}

/** One call: what it was asked, what people see of it, and what the model saw. */
export function CallCard({ call, isOpen: isOpenAtFirst, isTarget, ...context }: CallCardProps): ReactNode {
  const [isToggled, setToggled] = useState(false);
  const [isModelView, setModelView] = useState(false);
  const box = useRef<HTMLElement>(null);
  const isOpen = isOpenAtFirst !== isToggled;
  useEffect(() => {
    if (isTarget) box.current?.scrollIntoView({ block: 'center' });
  }, [isTarget]);
  const { id, tool, input, result, partial, nested, state, question } = call;
  const hasBody = (result ?? partial ?? nested) !== undefined;
  const tone = state === 'interrupted' ? 'amber' : state === 'failed' ? 'red' : 'mute';
  return (
    <article ref={box} id={id} className={`card call${isOpen && hasBody ? '' : ' shut'}`}>
      <header>
        <button
          type="button"
          className="plain-btn"
          aria-expanded={isOpen && hasBody}
          aria-label={`${tool}: ${isOpen ? 'close' : 'open'}`}
          disabled={!hasBody}
          onClick={() => setToggled(!isToggled)}
        >
          <Status status={shownCallStatus(call)}>
            <b>{tool}</b>
          </Status>
        </button>
        <code>{findSubject(input)}</code>
        <span className={`sm ${tone}`}>
          {describeState(call, context.now)}
          {call.undo !== undefined &&
            `, ${call.undo === 'running' ? 'being undone' : call.undo === 'undone' ? 'undone' : `undo ${call.undo}`}`}
        </span>
        {result !== undefined && isOpen && (
          <Switch name={`${id}-view`} tool={tool} isModelView={isModelView} onChange={setModelView} />
        )}
        {state === 'running' && <StopCall call={call} {...context} />}
      </header>
      {state === 'waiting' && question !== undefined && <QuestionCard asked={question} {...context} />}
      {isOpen && hasBody && (isModelView ? <ModelView call={call} /> : <PeopleView call={call} {...context} />)}
    </article>
  );
}

interface SwitchProps {
  readonly name: string;
  readonly tool: string;
  readonly isModelView: boolean;
  readonly onChange: (isModelView: boolean) => void;
}

function Switch({ name, tool, isModelView, onChange }: SwitchProps): ReactNode {
  return (
    <span className="seg" role="radiogroup" aria-label={`Show ${tool} as`}>
      <label>
        <input type="radio" name={name} checked={!isModelView} onChange={() => onChange(false)} />
        details
      </label>
      <label>
        <input type="radio" name={name} checked={isModelView} onChange={() => onChange(true)} />
        what the model saw
      </label>
    </span>
  );
}

function ModelView({ call }: { readonly call: CallModel }): ReactNode {
  return <pre className="out wrap">{modelSaw(call) || '(nothing)'}</pre>;
}

function PeopleView({ call, ...context }: CallContext & { readonly call: CallModel }): ReactNode {
  const { nested, result } = call;
  const view = toView(call);
  const facts = view.kind === 'output' ? outputFacts(view) : [];
  return (
    <>
      {nested !== undefined && <NestedRun run={nested} {...context} />}
      {nested === undefined && <Details view={view} isCut={call.state === 'interrupted'} />}
      <p className="foot">
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        {result?.error !== undefined && <span className="red">{result.error}</span>}
        <a className="link push" href={`#${encodeURIComponent(call.id)}`}>
          Link to this call
        </a>
      </p>
    </>
  );
}

function outputFacts(view: Extract<ReturnType<typeof toView>, { kind: 'output' }>): string[] {
  const { exit, processesEnded, survivors, logPath, bytes } = view;
  return [
    exit,
    processesEnded ? `${plural(processesEnded, 'process', 'processes')} ended` : undefined,
    survivors ? `${plural(survivors, 'process', 'processes')} may survive` : undefined,
    `${plural(bytes, 'byte')} of output`,
    logPath === undefined ? undefined : `all of it: ${logPath}`,
  ].filter((fact) => fact !== undefined);
}

/** Stops one call; the task continues. */
function StopCall({ call, task, client, me }: CallContext & { readonly call: CallModel }): ReactNode {
  const [answer, setAnswer] = useState('');
  if (!me.rights.includes('cancel') || call.waitsUntil !== undefined || task.status !== 'running') return null;
  const stop = (): void => {
    setAnswer('asked');
    client.cancelCall(task.id, call.id).then(
      (receipt) => setAnswer(receipt.result === 'accepted' ? 'asked' : receipt.result),
      (error: unknown) => setAnswer(describeError(error).message),
    );
  };
  return answer === '' ? (
    <Button look="tiny so" aria-label={`Stop this call of ${call.tool}`} onClick={stop}>
      Stop call
    </Button>
  ) : (
    <span className="sm amber" role="status">
      {answer === 'asked' ? 'stop sent' : answer}
    </span>
  );
}

/** What a run inside a call said and did. */
function NestedRun({ run, ...context }: CallContext & { readonly run: RunModel }): ReactNode {
  return (
    <div className="nested stack2">
      {run.turns.flatMap(toItems).map((item) =>
        'call' in item ? (
          <CallCard key={getKey(item)} call={item.call} isOpen={false} isTarget={false} {...context} />
        ) : (
          item.turn.text !== '' && (
            <p key={getKey(item)} className="say wrap">
              {item.turn.text}
              {item.turn.isCut && <span className="cut" role="img" aria-label="interrupted here" />}
            </p>
          )
        ),
      )}
    </div>
  );
}

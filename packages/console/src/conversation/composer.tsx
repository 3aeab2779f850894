import type { Policy } from '@whoa/core';
import type { TaskClient } from '@whoa/server/task-client';
import type { TaskSummary } from '@whoa/tasks';
import { type ReactNode, type SubmitEvent, useState } from 'react';
import { describeError, type Me } from '../api/session.ts';
import { Button, TextBox } from '../page/parts.tsx';

const EFFECTS: readonly { readonly policy: Policy; readonly name: string; readonly words: string }[] = [
  {
    policy: 'steer',
    name: 'Tell it now',
    words: 'The run reads it before its next step. If it ends first, this is next.',
  },
  { policy: 'queue', name: 'After this', words: 'The message waits until the run has ended.' },
  {
    policy: 'replace',
    name: 'Stop and do this instead',
    words: 'The run is stopped, and this message takes its place.',
  },
];

interface ComposerProps {
  readonly me: Me;
  readonly tenant: string | undefined;
  readonly id: string;
  readonly client: TaskClient;
  /** The task that runs in the conversation. */
  readonly current: TaskSummary | undefined;
  /** Something runs or waits in it. */
  readonly isLive: boolean;
  /** The agent of the conversation, once it has one. */
  readonly agent: string | undefined;
  readonly problem: string;
  readonly onSent: () => void;
  readonly onStop: () => void;
}

/** Sends messages to a conversation. While something runs, what a message does to it stands where it is typed. */
export function Composer({ me, tenant, id, client, current, isLive, agent, ...props }: ComposerProps): ReactNode {
  const [chosenPolicy, setPolicy] = useState<Policy>('steer');
  const [words, setWords] = useState('');
  const [problem, setProblem] = useState('');
  const [chosen, setChosen] = useState(me.agents?.[0] ?? '');
  const { onStop, onSent } = props;
  const said = problem || props.problem;
  const stop = isLive && me.rights.includes('cancel') && <StopConversation onStop={onStop} />;
  if (tenant !== undefined || !me.rights.includes('start')) return <ReadOnly stop={stop} problem={said} />;
  // A message stops nothing that its sender did not see: what began in the meantime reads it.
  const policy = current?.status === 'running' || current?.status === 'init' ? chosenPolicy : 'steer';
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    setProblem('');
    client.create({ agent: agent ?? chosen, input: words, conversation: id, policy }).then(
      (receipt) => {
        if ('task' in receipt) setWords('');
        else setProblem(receipt.result === 'rejected' ? 'Another task is running.' : 'Too many messages are waiting.');
        onSent();
      },
      (error: unknown) => setProblem(describeError(error).message),
    );
  };
  return (
    <footer>
      <form className="col stack2" onSubmit={send}>
        {current !== undefined && <EffectChoice {...{ current, policy }} onChange={setPolicy} />}
        {agent === undefined && (
          <div className="row">
            <AgentChoice agents={me.agents} agent={chosen} onChange={setChosen} />
          </div>
        )}
        <div className="row send">
          <MessageBox words={words} onChange={setWords} isRunning={current !== undefined} />
          {stop}
          <button type="submit" className="btn ink" disabled={words.trim() === '' || (agent ?? chosen) === ''}>
            Send
          </button>
        </div>
        <Problem>{said}</Problem>
      </form>
    </footer>
  );
}

function Problem({ children }: { readonly children: string }): ReactNode {
  if (children === '') return null;
  return (
    <p className="sm red" role="alert">
      {children}
    </p>
  );
}

function ReadOnly({ stop, problem }: { readonly stop: ReactNode; readonly problem: string }): ReactNode {
  return (
    <footer>
      <div className="col stack2">
        <p className="row sm soft">
          You can read this conversation{stop ? ' and stop it.' : '.'} {stop}
        </p>
        <Problem>{problem}</Problem>
      </div>
    </footer>
  );
}

function StopConversation({ onStop }: { readonly onStop: () => void }): ReactNode {
  return (
    <Button look="stop" onClick={onStop}>
      Stop
    </Button>
  );
}

interface EffectChoiceProps {
  readonly current: TaskSummary;
  readonly policy: Policy;
  readonly onChange: (policy: Policy) => void;
}

function EffectChoice({ current, policy, onChange }: EffectChoiceProps): ReactNode {
  if (current.status === 'cancelling')
    return <p className="sm mute">The run is being stopped. A message waits until it has ended.</p>;
  return (
    <div className="row">
      <span className="seg" role="radiogroup" aria-label="What a new message does">
        {EFFECTS.map(({ policy: one, name }) => (
          <label key={one}>
            <input type="radio" name="policy" checked={policy === one} onChange={() => onChange(one)} />
            {name}
          </label>
        ))}
      </span>
      <span className="sm mute grow">{EFFECTS.find((one) => one.policy === policy)?.words}</span>
    </div>
  );
}

interface AgentChoiceProps {
  /** Left out where any name is accepted. */
  readonly agents: readonly string[] | undefined;
  readonly agent: string;
  readonly onChange: (agent: string) => void;
}

function AgentChoice({ agents, agent, onChange }: AgentChoiceProps): ReactNode {
  if (agents === undefined)
    return <TextBox required aria-label="Agent" placeholder="Agent" value={agent} onChange={onChange} />;
  return (
    <select aria-label="Agent" value={agent} onChange={(event) => onChange(event.target.value)}>
      {agents.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

interface MessageBoxProps {
  readonly words: string;
  readonly onChange: (words: string) => void;
  readonly isRunning: boolean;
}

/** Enter sends, Shift-Enter begins a line. */
function MessageBox({ words, onChange, isRunning }: MessageBoxProps): ReactNode {
  return (
    <textarea
      rows={2}
      aria-label="Message"
      placeholder={isRunning ? 'Say something while it works' : 'Say something'}
      required
      value={words}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) {
          event.preventDefault();
          event.currentTarget.form?.requestSubmit();
        }
      }}
    />
  );
}

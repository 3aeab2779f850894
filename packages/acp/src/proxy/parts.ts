import { type Clock, systemWorld } from '@whoa/core/embed';
import type { FrameId } from '../wire/frame.ts';
import type { AgentLife } from './life.ts';
import type { Message } from './message.ts';
import type { ProxyEvent, ProxyOptions } from './options.ts';
import type { Port } from './port.ts';
import { ProxySession } from './session.ts';

/** With what follows, a stop takes less than a second. */
const WAIT_MS = 800;

/** A request of the editor that the agent has not answered. */
export interface AgentQuestion {
  readonly message: Message;
  readonly session: ProxySession | undefined;
}

/** A request of the agent that the editor has not answered. */
interface Question {
  readonly method: string;
  readonly session: ProxySession | undefined;
}

/** What the parts of a proxy share. */
export abstract class Parts {
  readonly clock: Clock;
  readonly waitMs: number;
  abstract readonly editor: Port;
  abstract readonly life: AgentLife;
  /** By their ids at the editor. */
  readonly sessions: Map<string, ProxySession> = new Map();
  /** By their ids at the agent. */
  readonly atAgent: Map<string, ProxySession> = new Map();
  readonly asked: Map<FrameId, AgentQuestion> = new Map();
  readonly questions: Map<FrameId, Question> = new Map();
  /** The version of the protocol that both sides agreed on. */
  version = 1;
  /** How many messages of the agent were not passed on. */
  dropped = 0;
  /** When a stop was last answered. */
  stoppedAt: number = -Infinity;
  /** Stops that are answered, and reported when the end of their processes is proved. */
  readonly reports: Set<Promise<void>> = new Set();

  constructor({ clock = systemWorld.clock, waitMs = WAIT_MS }: ProxyOptions) {
    this.clock = clock;
    this.waitMs = waitMs;
  }

  abstract readonly onEvent: (event: ProxyEvent) => void;
  /** Lets something continue; what fails in it ends the proxy. */
  abstract readonly follow: (work: Promise<unknown>) => void;

  /** The session that a message of the editor names; created if it was opened in a way that is not known. */
  findSession(id: unknown): ProxySession | undefined {
    if (typeof id !== 'string') return undefined;
    const known = this.sessions.get(id);
    if (known !== undefined) return known;
    const session = new ProxySession(id);
    this.sessions.set(id, session);
    this.atAgent.set(id, session);
    return session;
  }

  forget(session: ProxySession): void {
    this.sessions.delete(session.id);
    if (this.atAgent.get(session.agentId) === session) this.atAgent.delete(session.agentId);
  }
}

/** What a user did in a page, which the server has to know. */
export type CommandKind = 'send' | 'answer' | 'output' | 'stop' | 'regenerate' | 'rollback';

/** A command of a page. The server knows it again by its id, or by what it names. */
export interface Command {
  readonly id: string;
  readonly kind: CommandKind;
  readonly chatId: string;
  readonly body: object;
  /** Who gave it, as the server calls them. It takes the command from no one else. */
  readonly principal?: string | undefined;
}

/** It goes first. */
export const isStop = ({ kind }: Pick<Command, 'kind'>): boolean => kind === 'stop' || kind === 'rollback';

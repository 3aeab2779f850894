import { BIN } from '../../../command/terminal.ts';
import type { Subject } from '../subject.ts';

/** Ours, from the sources: what others are compared with is checked in the same way. */
export const whoa: Subject = {
  name: 'whoa',
  title: 'Whoa',
  protocol: 'acp',
  packages: {},
  about:
    'Ours, from the sources, without its sandbox: that has no network, so the witness could not be reached from inside.',
  page: '[Editors](guides/editors.md)',
  fairly: 'The kit and this agent have the same makers, and the kit’s checks were written with it at hand.',
  command: () => [...BIN, 'acp', '--sandbox', 'none'],
};

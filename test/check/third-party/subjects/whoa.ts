import { BIN } from '../../../command/terminal.ts';
import type { Subject } from '../subject.ts';

/** Ours, from the sources: it is checked in the same way as the others. */
export const whoa: Subject = {
  name: 'whoa',
  title: 'Whoa',
  protocol: 'acp',
  packages: {},
  about: 'Ours, from the sources, without its sandbox, which has no network, so the probe inside could not report.',
  page: '[Editors](../guides/editors.md)',
  fairly: 'The same project makes the kit and this agent, and the kit’s checks were written with this agent available.',
  command: () => [...BIN, 'acp', '--sandbox', 'none'],
};

// The stop report of a reply.
import { duration, h, shape } from './elements.js';

const LEVELS = {
  drain: 'nothing new starts',
  abort: 'what can be interrupted stops',
  kill: 'nothing more is waited for',
};

export function reportCard(report) {
  const left = report.clean ? 'Nothing was left behind.' : 'Not everything could be proved ended.';
  const title = h('h2', '', `Stopped after ${duration(report.settledAfterMs)}. ${left}`);
  const { by, via, message } = report.reason;
  const why = [by && `by ${by}`, via && `via ${via}`, message].filter(Boolean).join(', ');
  const rows = [
    ...report.levels.map(({ level, afterMs }) => ({ afterMs, state: 'level', name: level, words: LEVELS[level] })),
    ...(report.reply ? [rowOfReply(report.reply)] : []),
    ...report.calls.map(rowOfCall),
    { afterMs: report.settledAfterMs, state: 'cancelled', name: 'settled', words: '' },
  ].sort((a, b) => a.afterMs - b.afterMs);
  const items = rows.map(({ state, name, words, afterMs }) =>
    h(
      'li',
      '',
      shape(state, h('span', '', h('b', '', name), ` ${words}`)),
      h('time', '', `${afterMs < 0 ? '' : '+'}${duration(afterMs)}`),
    ),
  );
  return h('section', 'card report', h('header', '', title, h('span', 'mute', why)), h('ul', '', ...items));
}

function rowOfReply({ characters, afterMs }) {
  return { afterMs, state: 'interrupted', name: 'reply', words: `closed, ${characters} characters kept` };
}

function rowOfCall({ tool, state, waitedFor, processesEnded, survivors, afterMs }) {
  const words = [state === 'unknown' ? 'abandoned, its outcome is unknown' : state.replace('-', ' ')];
  if (waitedFor) words.push('waited for: it must not be cut');
  if (processesEnded) words.push(`${processesEnded} ${processesEnded === 1 ? 'process' : 'processes'} ended`);
  if (survivors) words.push(`${survivors} may survive`);
  return { afterMs, state, name: tool, words: words.join(', ') };
}

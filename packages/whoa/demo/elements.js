// Put all content into text nodes, never into markup.

export function h(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

export function shape(state, ...words) {
  return h('span', `st ${state}`, h('i', ''), ...words);
}

export function duration(ms) {
  return Math.abs(ms) < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}

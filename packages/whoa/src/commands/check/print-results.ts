import { CHECKS, type CheckReport, type CheckResult, GROUPS } from '@whoa/check';
import { EXIT } from '../../command.ts';
import type { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const SIGNS = { passed: '✔', failed: '✘', unclear: '?', 'not-applicable': '–' } as const;
const STYLES = { passed: 'green', failed: 'red', unclear: 'yellow', 'not-applicable': 'dim' } as const;
const MAX_CHARACTERS = 600;

/** Lists the checks and the rules that they stand on. */
export function listChecks(screen: Screen): number {
  let last = '';
  for (const { id, group, title, needs, rules = {} } of CHECKS) {
    const sources = Object.entries(rules).map(([protocol, { from, level }]) => `${protocol}: ${from} (${level})`);
    screen.data({ id, group, title, needs, rules });
    if (group !== last) screen.line(`${last === '' ? '' : '\n'}${screen.style('bold', GROUPS[group])} (${group})`);
    last = group;
    screen.line(`  ${id}: ${title}`);
    screen.line(screen.style('dim', `      ${sources.length === 0 ? 'our own rule' : sources.join('; ')}`));
  }
  return EXIT.success;
}

/** Prints results as they come. */
export class ResultPrinter {
  readonly #screen: Screen;
  #group = '';

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  print(result: CheckResult): void {
    const screen = this.#screen;
    screen.data({ type: 'check', ...result });
    const { group, id, title, status, detail, rule } = result;
    if (group !== this.#group) screen.line(`${this.#group === '' ? '' : '\n'}${screen.style('bold', GROUPS[group])}`);
    this.#group = group;
    const words = oneLine(detail, MAX_CHARACTERS);
    const isQuiet = status === 'passed' || status === 'not-applicable';
    const aside = isQuiet && words !== '' ? screen.style('dim', ` (${words})`) : '';
    screen.line(`  ${screen.style(STYLES[status], SIGNS[status])} ${id}: ${title}${aside}`);
    if (!isQuiet) screen.line(`      ${words}`);
    if (status === 'failed') screen.line(screen.style('dim', `      ${rule.from} (${rule.level}): ${rule.text}`));
  }

  finish({ agent, protocol, counts }: CheckReport): void {
    const screen = this.#screen;
    screen.status(undefined);
    screen.data({ type: 'report', agent, protocol, counts });
    const { passed, failed, unclear, 'not-applicable': others } = counts;
    screen.line(
      `\n${oneLine(agent, MAX_CHARACTERS)}: ${passed} passed, ${failed} failed, ${unclear} unclear, ${others} do not apply`,
    );
  }
}

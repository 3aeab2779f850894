import { CHECKS, type CheckReport, type CheckResult, GROUPS } from '@whoa/check';
import { EXIT } from '../../command.ts';
import type { Screen } from '../../terminal/screen.ts';
import { oneLine } from '../../terminal/text/plain-text.ts';

const SIGNS = { passed: '✔', failed: '✘', unclear: '?', 'not-applicable': '–' } as const;
const STYLES = { passed: 'green', failed: 'red', unclear: 'yellow', 'not-applicable': 'dim' } as const;
const MAX_CHARACTERS = 600;

/** Lists the checks and the rules that they stand on. */
export function listChecks(screen: Screen, asJson: boolean): number {
  let group = '';
  for (const check of CHECKS) {
    const rules = Object.entries(check.rules ?? {}).map(
      ([protocol, { from, level }]) => `${protocol}: ${from} (${level})`,
    );
    if (asJson) {
      screen.data({
        id: check.id,
        group: check.group,
        title: check.title,
        needs: check.needs,
        rules: check.rules ?? {},
      });
      continue;
    }
    if (check.group !== group)
      screen.line(`${group === '' ? '' : '\n'}${screen.style('bold', GROUPS[check.group])} (${check.group})`);
    group = check.group;
    screen.line(`  ${check.id}: ${check.title}`);
    screen.line(screen.style('dim', `      ${rules.length === 0 ? 'our own rule' : rules.join('; ')}`));
  }
  return EXIT.success;
}

/** Prints results as they come. */
export class ResultPrinter {
  readonly #screen: Screen;
  readonly #asJson: boolean;
  #group = '';

  constructor(screen: Screen, asJson: boolean) {
    this.#screen = screen;
    this.#asJson = asJson;
  }

  print(result: CheckResult): void {
    const screen = this.#screen;
    if (this.#asJson) {
      screen.data({ type: 'check', ...result });
      return;
    }
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
    if (this.#asJson) screen.data({ type: 'report', agent, protocol, counts });
    else {
      const { passed, failed, unclear, 'not-applicable': others } = counts;
      screen.line(
        `\n${oneLine(agent, MAX_CHARACTERS)}: ${passed} passed, ${failed} failed, ${unclear} unclear, ${others} do not apply`,
      );
    }
  }
}

import { type CallResult, type RunEvent, toText } from '@whoa/core';
import type { Hooks } from '@whoa/core/internal';
import type { ModelRequest } from '@whoa/core/model';
import type { ScriptedStep } from '@whoa/core/testing';

/** The message that the agent answers by introducing itself. */
export const FIRST_MESSAGE = 'What can you do?';

const TESTS = 24;
const RUN_TESTS = `for n in $(seq 1 ${TESTS}); do echo "test $n passed"; sleep 0.25; done`;
const MAX_QUOTED = 80;
/** A message with one of these words means that the release should not be published. */
const OBJECTION = /\b(?:no|not|don.?t|never|stop|wait|without|skip|hold)\b/iu;

const INTRODUCTION =
  'I look something up, run real processes, and make one call that must not be interrupted. Press Stop at any moment: the text and ' +
  'results so far are kept, nothing keeps running, and a report says how each call ended. Reload the page while I work, or close it ' +
  'and open it again: only Stop stops me, from any tab. Now send: Ship release 2.4';
const BEGIN = 'On it. I will look at the changes and run the tests at the same time. ';
const PUBLISH =
  `All ${TESTS} tests passed, so I will publish the release. That call must not be interrupted: press Stop while it runs, and only ` +
  'this call is waited for. ';
const NOT_PUBLISHED =
  'I read how every call ended before I decide what is next. Send another message, and I start again.';
const LAST =
  'Since you are still here: a reply has no side effects, so a stop in the middle of this text ends it ' +
  'immediately, keeps the text so far, and gives it to the model with the next message. Calls are different. A call ' +
  'that only reads is interrupted; a call that runs processes ends when all its processes are verified gone; a call that ' +
  'charges a card or publishes a release may finish, and no new call starts. The report lists what happened to each. ' +
  'That is all. Send another message, and press Stop earlier.';

interface Script {
  readonly nextReply: (request: ModelRequest) => readonly ScriptedStep[];
  /** Hooks of the run, which tell the script what happens in it. */
  readonly hooks: Hooks<RunEvent>;
}

/** The replies of one run. Each looks at how the calls before it ended, and at what the user said in between. */
export function createScript(): Script {
  const results = new Map<string, CallResult>();
  let unread: string[] = [];
  let replies: Iterator<readonly ScriptedStep[], never> | undefined;
  const hear = (): string => {
    const quoted = unread.map((words) => `“${words.slice(0, MAX_QUOTED)}”`).join(' and ');
    unread = [];
    return quoted;
  };
  return {
    hooks: {
      'call-end': ({ result }) => void results.set(result.tool, result),
      'steer-delivered': ({ message }) => void unread.push(toText(message.content)),
    },
    nextReply({ messages }) {
      const isFirst = messages.findLastIndex(({ role }) => role === 'user') === 0;
      replies ??= isFirst ? describeItself(hear) : ship(results, hear);
      return replies.next().value;
    },
  };
}

type Hear = () => string;

function* describeItself(hear: Hear): Generator<readonly ScriptedStep[], never> {
  yield [INTRODUCTION];
  while (true) yield [`You said ${hear()} while I wrote. Send it again, and I start.`];
}

function* ship(results: ReadonlyMap<string, CallResult>, hear: Hear): Generator<readonly ScriptedStep[], never> {
  const early = hear();
  yield [
    early && `You also said ${early}. `,
    BEGIN,
    { call: 'read_changes', input: {} },
    { call: 'bash', input: { command: RUN_TESTS } },
  ];
  const said = hear();
  const heard = said && `You said ${said} while I worked, and I read it here, between two steps. `;
  const objection = OBJECTION.test(said) ? `You said ${said}` : undefined;
  const obstacle = findObstacle(results) ?? objection;
  if (obstacle !== undefined) {
    yield [obstacle === objection ? '' : heard, `${obstacle}, so I do not publish. `, NOT_PUBLISHED];
  } else {
    yield [heard, PUBLISH, { call: 'publish_release', input: { release: '2.4.0' } }];
    const late = hear();
    const { state } = results.get('publish_release')!;
    yield [
      late && `You said ${late} while I published, so I read it only now. `,
      state === 'finished' ? 'The release is out. ' : `The call ended as ${state}, so look before you repeat it. `,
      LAST,
    ];
  }
  while (true) yield [`You said ${hear()}. I had nothing left to do by then. Send it again, and I start.`];
}

/** Why the results do not allow a release, if they do not. */
function findObstacle(results: ReadonlyMap<string, CallResult>): string | undefined {
  const tests = results.get('bash')!;
  const passed = toText(tests.content).match(/^test \d+ passed$/gmu)?.length ?? 0;
  if (tests.state === 'interrupted') return `You stopped the tests after ${passed} of ${TESTS}`;
  if (passed < TESTS) return `Only ${passed} of ${TESTS} tests passed`;
  return results.get('read_changes')!.state === 'finished'
    ? undefined
    : 'All tests passed, but you stopped the look at the changes';
}

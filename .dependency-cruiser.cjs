// The import table: which package may know which, and which folder of the core, of the server and of tasks. Arrows only point down.
const packages = {
  core: [],
  tools: ['core'],
  'ai-sdk': ['core'],
  tasks: ['core'],
  bullmq: ['core', 'tasks'],
  acp: ['core'],
  server: ['core', 'ai-sdk', 'tasks'],
  check: ['ai-sdk'],
  console: ['core', 'tasks', 'server'],
  whoa: ['core', 'tools', 'ai-sdk', 'tasks', 'acp', 'check', 'server'],
};
const coreFolders = {
  stop: [],
  tool: ['stop'],
  approval: ['stop', 'tool'],
  view: ['tool'],
  run: ['stop', 'tool'],
  conversation: ['stop', 'tool', 'run'],
  testing: ['stop', 'tool', 'run', 'conversation'],
};
const serverFolders = {
  http: [],
  observe: ['http'],
  tasks: ['http'],
  chat: ['http', 'tasks'],
  mcp: ['http', 'tasks'],
};
const tasksFolders = {
  bus: [],
  feed: [],
  ledger: ['bus', 'feed'],
  cancellations: ['bus', 'ledger'],
  delivery: ['ledger'],
  run: ['ledger', 'cancellations', 'delivery'],
  follow: ['bus', 'ledger', 'run'],
  operate: ['ledger'],
  conversation: ['ledger', 'delivery', 'run'],
  compat: ['ledger', 'cancellations', 'run'],
};
const tasksFolder = (name) => `^packages/tasks/src/${name}/`;
/** With `task.ts` and `store.ts` they say what one may ask of a store: every folder may know them. */
const storeContract = '^packages/tasks/src/(bus/hint|delivery/worker-store|feed/feed)\\.ts$';
const postgresConnection = '^packages/tasks/src/ledger/postgres/connection/';
const aboveLedger = Object.keys(tasksFolders).filter(
  (name) => !['bus', 'feed', 'ledger', 'cancellations'].includes(name),
);
/** The folders of packages that are entries: what their index lists is public. */
const entries =
  'addresses|approval|client|effects|compat|embed|internal|model|proxy|store|telemetry|testing|transport|view|webhooks';

const arrows = (table, where) =>
  Object.entries(table).map(([from, allowed]) => ({
    name: `${from}-points-down`,
    severity: 'error',
    from: { path: `${where(from)}` },
    to: { path: `${where('[^/]+')}`, pathNot: [from, ...allowed].map(where) },
  }));

module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    ...arrows(packages, (name) => `^packages/${name}/`),
    ...arrows(coreFolders, (name) => `^packages/core/src/${name}/`),
    ...arrows(serverFolders, (name) => `^packages/server/src/${name}/`),
    ...arrows(tasksFolders, tasksFolder).map(({ from, to, ...rule }) => ({
      ...rule,
      // The type of an engine names the runner that it serves.
      from: { ...from, pathNot: '/delivery/engine\\.ts$' },
      to: {
        ...to,
        pathNot: [...to.pathNot, storeContract, ...(rule.name.startsWith('bus-') ? [postgresConnection] : [])],
      },
    })),
    {
      name: 'workers-and-clients-know-the-contract',
      comment: 'Any store may be below them: of the ledger they know only the rules.',
      severity: 'error',
      from: { path: `^packages/tasks/src/(${aboveLedger.join('|')})/`, pathNot: '\\.test\\.ts$' },
      to: { path: tasksFolder('ledger'), pathNot: tasksFolder('ledger/rules') },
    },
    {
      name: 'rules-know-no-store',
      comment: 'Rules and operations are the same in every store. A driver says what an operation gets.',
      severity: 'error',
      from: { path: '^packages/tasks/src/ledger/(rules|operations)/' },
      to: {
        path: '^packages/tasks/src/[^/]+/',
        pathNot: [storeContract, '^packages/tasks/src/ledger/((rules|operations)/|driver\\.ts$)'],
      },
    },
    {
      name: 'core-needs-nothing',
      severity: 'error',
      from: { path: '^packages/core/src', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-peer', 'npm-optional', 'npm-no-pkg', 'npm-unknown'] },
    },
    {
      name: 'only-core-testing-asks-node',
      comment: 'The rest of the core runs wherever JavaScript does.',
      severity: 'error',
      from: { path: '^packages/core/src/(stop|tool|approval|view|run|conversation)/', pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'packages-by-their-front-door',
      severity: 'error',
      from: { path: '^packages/([^/]+)/' },
      to: {
        path: '^packages/[^/]+/src/',
        pathNot: [
          '^packages/$1/',
          `^packages/[^/]+/src/((${entries})/)?index\\.ts$`,
          `^packages/server/src/(chat|observe|tasks)/(${entries})/index\\.ts$`,
          '^packages/tools/src/containment/internal/index\\.ts$',
        ],
      },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(/dist/|\\.test\\.ts$)' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@whoa/source', 'import', 'types', 'node', 'default'],
    },
  },
};

// The navigation of the site. test/docs.test.ts checks that every page is in it once.
import type { DefaultTheme } from 'vitepress';

const page = (text: string, link: string): DefaultTheme.SidebarItem => ({ text, link });

const section = (text: string, items: DefaultTheme.SidebarItem[]): DefaultTheme.SidebarItem => ({ text, items });

const group = (text: string, items: DefaultTheme.SidebarItem[]): DefaultTheme.SidebarItem => ({
  text,
  items,
  collapsed: true,
});

export const sidebar: DefaultTheme.SidebarItem[] = [
  section('Start', [
    page('What Whoa is', '/'),
    page('Get started', '/start'),
    page('Which setup do I need?', '/choose'),
    page('Tutorial: a chat that really stops', '/tutorial'),
    page('Features', '/features'),
    page('Examples', '/examples'),
  ]),
  section('How-to guides', [
    group('Web', [
      page('Stop button for useChat', '/how-to/stop-button-for-usechat'),
      page('How a web chat behaves', '/guides/web-chat/'),
      page('Where chats are kept', '/guides/web-chat/history'),
      page('Where a chat runs', '/guides/web-chat/deploy'),
      page('Background work', '/guides/web-chat/background'),
      page('AG-UI', '/guides/web-chat/ag-ui'),
    ]),
    group('Agents', [
      page('Overview', '/guides/agents/'),
      page('Stream the reply', '/guides/agents/streaming'),
      page('Take a second turn', '/guides/agents/second-turn'),
      page('Ask for approval', '/guides/agents/approval'),
      page('Limits and budgets', '/guides/agents/limits-and-budgets'),
      page('Retry a provider', '/guides/agents/retries'),
      page('Compact a history', '/guides/agents/compact'),
      page('Run calls in parallel', '/guides/agents/concurrency'),
      page('Run a plan without a model', '/guides/agents/runtime'),
      page('Use an agent as a tool', '/guides/agents/sub-agents'),
      page('Undo on cancel', '/how-to/undo-on-cancel'),
      page("Pass your app's data", '/guides/agents/context'),
      page('Conversations', '/guides/conversations'),
      page('Providers', '/guides/providers'),
    ]),
    page('Your own loop', '/guides/your-own-loop'),
    group('Tools', [
      page('Write a tool', '/guides/tools/write-a-tool'),
      page('Kill the whole process tree', '/how-to/kill-the-process-tree'),
      page('Make a call safe to ask about', '/guides/tools/find-out'),
      page('Shell and processes', '/guides/tools/processes'),
      page('Sandbox', '/guides/tools/sandbox'),
      page('Files', '/guides/tools/files'),
      page('MCP servers', '/guides/tools/mcp'),
    ]),
    group('Tasks', [
      page('Workers and tasks', '/guides/workers/'),
      page('Cancel by event or checker', '/guides/workers/cancel-tasks'),
      page('Ask a person', '/guides/workers/ask-a-person'),
      page('Tasks over HTTP', '/guides/workers/http'),
      page('From Python and curl', '/guides/workers/python'),
      page('BullMQ in front', '/guides/workers/bullmq'),
      page('Other engines', '/guides/workers/engines'),
      page('Write a store', '/guides/workers/write-a-store'),
      page('Change a rule', '/guides/workers/change-a-rule'),
    ]),
    group('Clients', [
      page('Terminal', '/guides/terminal'),
      page('Console', '/guides/console'),
      page('Editors', '/guides/editors'),
    ]),
    page('Check an agent', '/guides/check'),
  ]),
  section('Operate', [
    page('Deploy', '/operations/deploy'),
    page('Choose a store', '/operations/stores'),
    page('Postgres', '/operations/postgres'),
    page('A bus', '/operations/bus'),
    page('Monitor', '/operations/telemetry'),
    page('Run day to day', '/operations/operate'),
    page('Troubleshooting', '/troubleshooting'),
    page('On call', '/operations/on-call'),
    page('Webhooks', '/operations/webhooks'),
    page('Upgrade', '/operations/upgrade'),
    page('Back up and restore', '/operations/backup'),
    page('Capacity planning', '/operations/sizing'),
  ]),
  section('Concepts', [
    page('How a stop works', '/concepts/cancellation'),
    page('How tasks work', '/concepts/tasks'),
    page('Why not a queue?', '/concepts/why-not-a-queue'),
    page('Glossary', '/glossary'),
  ]),
  section('Reference', [
    page('The command', '/reference/cli'),
    page('Configuration', '/reference/configuration'),
    page('Settings and limits', '/reference/settings'),
    page('Hooks and events', '/guides/agents/hooks'),
    page('Errors', '/reference/errors'),
  ]),
  section('Trust', [
    page('The 14 promises', '/promises/'),
    page('Threat model', '/security'),
    page('Stability and platforms', '/stability'),
    group('Evidence', [
      page('How we test', '/evidence/'),
      page('Simulation and model check', '/evidence/simulation'),
      page('Campaign log', '/evidence/campaign-log'),
      page('Check results', '/evidence/check-results'),
      page('Compared with other libraries', '/evidence/peers'),
      page('Seen elsewhere', '/evidence/seen-elsewhere'),
      page('MCP conformance', '/evidence/mcp-conformance'),
    ]),
  ]),
];

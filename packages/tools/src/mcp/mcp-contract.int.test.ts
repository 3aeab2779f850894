import { isNight } from '../../../../test/night.ts';
import { describeToolContract } from '../../../../test/tools/contract-table.ts';
import { openTestServer } from '../../../../test/tools/mcp-server.ts';
import { expectNothingLeft } from '../../../../test/tools/nothing-left.ts';
import type { ToolContractOptions } from '../testing/index.ts';

expectNothingLeft();

function createContract(mode: 'stdio' | 'http'): ToolContractOptions {
  return {
    async create() {
      const opened = await openTestServer(mode);
      let slowCalls = 0;
      const started = () => opened.log().split('count to 1000000 began').length - 1;
      return {
        tool: opened.tool('count'),
        input: { to: 2 },
        slow: {
          input: { to: 1_000_000 },
          async whenBusy() {
            slowCalls++;
            while (started() < slowCalls) await new Promise((resolve) => setTimeout(resolve, 2));
          },
        },
        [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
      };
    },
  };
}

describeToolContract({
  'MCP over stdio': createContract('stdio'),
  ...(isNight && {
    'MCP over HTTP': {
      ...createContract('http'),
      skip: {
        'leaves-nothing': 'fetch keeps idle connections for some seconds; the check after the file looks for them',
      },
    },
  }),
});

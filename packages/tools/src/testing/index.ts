// The contract of every tool.
export { createToolContract, type ToolContractOptions, type ToolContractCase } from './tool-contract.ts';

// The contract of a tool's `findOut`.
export { createFindOutContract, type FindOutContractOptions } from './find-out-contract.ts';

// Resources that a test left behind.
export { listResources, type ResourceList, waitForNoNewResources } from './resources.ts';
